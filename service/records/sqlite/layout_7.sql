-- Layout 7: keys of words, for corrections, and the languages of each field. A writer rebuilds everything derived from records.

CREATE TABLE word_key (
  key INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  word INTEGER NOT NULL,
  PRIMARY KEY (key, ordinal, word)
) WITHOUT ROWID;
ALTER TABLE scope ADD COLUMN languages TEXT NOT NULL DEFAULT '[]';
ALTER TABLE connection DROP COLUMN languages;
DELETE FROM meta WHERE key = 'letters';
UPDATE meta SET value = '' WHERE key = 'fold_version';
