-- Layout 7: keys of words, for corrections. A writer rebuilds everything derived from records.

CREATE TABLE word_key (
  key INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  word INTEGER NOT NULL,
  PRIMARY KEY (key, ordinal, word)
) WITHOUT ROWID;
DELETE FROM meta WHERE key = 'letters';
UPDATE meta SET value = '' WHERE key = 'fold_version';
