-- Layout 2: the folded texts that the index of words was made of, which search ranks records by. An
-- index without them is built anew. They are apart from the words, so that a page has more of those.

CREATE TABLE folded (
  seq bigint NOT NULL,
  ordinal integer NOT NULL,
  start integer NOT NULL,
  conn integer NOT NULL,
  text text NOT NULL,
  PRIMARY KEY (seq, ordinal, start)
) WITH (toast_tuple_target = 8160);
CREATE VIEW folded_seen AS
  SELECT * FROM folded WHERE conn = ANY ((SELECT rung_conns())::integer[]);
UPDATE meta SET value = '' WHERE key = 'fold_version';
