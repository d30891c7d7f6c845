-- Layout 7: keys of words, for corrections; the languages of each field; blobs by SHA-256; epochs of
-- commits, and the times from which records were moved. A writer rebuilds everything derived from
-- records.

CREATE TABLE word_key (
  key INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  word INTEGER NOT NULL,
  PRIMARY KEY (key, ordinal, word)
) WITHOUT ROWID;
ALTER TABLE word ADD COLUMN crowded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE scope ADD COLUMN languages TEXT NOT NULL DEFAULT '[]';
ALTER TABLE connection DROP COLUMN languages;
DELETE FROM meta WHERE key = 'letters';
UPDATE meta SET value = '' WHERE key = 'fold_version';

ALTER TABLE change ADD COLUMN was_at INTEGER;
ALTER TABLE change ADD COLUMN left_at TEXT;
CREATE TABLE commit_log (version INTEGER PRIMARY KEY, epoch TEXT NOT NULL);
INSERT INTO commit_log SELECT value - 1, lower(hex(randomblob(6))) FROM meta
  WHERE key = 'next_version' AND value > 1;

CREATE TABLE content (
  id INTEGER PRIMARY KEY,
  connection INTEGER NOT NULL REFERENCES connection(id),
  sha256 TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  UNIQUE (sha256, connection)
);
INSERT INTO content SELECT min(id), connection, sha256, size_bytes FROM blob
  GROUP BY connection, sha256;
CREATE TABLE reference (
  seq INTEGER NOT NULL,
  field TEXT NOT NULL,
  blob_id TEXT NOT NULL,
  blob INTEGER NOT NULL REFERENCES content(id),
  media_type TEXT NOT NULL,
  PRIMARY KEY (seq, field, blob_id, blob)
) WITHOUT ROWID;
INSERT OR IGNORE INTO reference SELECT u.seq, u.field, b.blob_id, c.id, b.media_type
  FROM blob_use u JOIN blob b ON b.id = u.blob
  JOIN content c ON c.sha256 = b.sha256 AND c.connection = b.connection;
DELETE FROM blob_part WHERE blob NOT IN (SELECT id FROM content);
DROP TABLE blob_use;
DROP TABLE blob;
ALTER TABLE content RENAME TO blob;
ALTER TABLE reference RENAME TO blob_use;
CREATE INDEX blob_use_blob ON blob_use(blob);
CREATE INDEX blob_use_name ON blob_use(blob_id);
