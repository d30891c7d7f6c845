-- Layout 3: keys of words, for corrections, and the languages of each field. A writer rebuilds
-- everything derived from records.

CREATE TABLE word_key (
  key integer NOT NULL,
  ordinal integer NOT NULL,
  word text COLLATE "C" NOT NULL,
  conn integer NOT NULL,
  PRIMARY KEY (key, ordinal, word)
);
CREATE VIEW word_key_seen AS
  SELECT * FROM word_key WHERE conn = ANY ((SELECT rung_conns())::integer[]);
ALTER TABLE scope ADD COLUMN languages text NOT NULL DEFAULT '[]';
ALTER TABLE connection DROP COLUMN languages;
DROP TABLE letter;
UPDATE meta SET value = '' WHERE key = 'fold_version';
