-- Layout 3: keys of words, for corrections; the languages of each field; blobs by SHA-256; epochs of
-- commits, and the times from which records were moved. A writer rebuilds everything derived from
-- records.

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

ALTER TABLE change ADD COLUMN was_at bigint, ADD COLUMN left_at text;
ALTER TABLE counter ALTER catalog TYPE text, ADD COLUMN epoch text NOT NULL
  DEFAULT left(replace(gen_random_uuid()::text, '-', ''), 12);
CREATE TABLE commit_log (
  version bigint NOT NULL,
  generation bigint NOT NULL,
  epoch text NOT NULL,
  PRIMARY KEY (version, generation)
);
INSERT INTO commit_log SELECT version, generation, epoch FROM counter WHERE version > 0;

-- Blobs by SHA-256. The tables may have row security already.
SET LOCAL rung.writes = 'on';
ALTER TABLE blob_use DROP CONSTRAINT blob_use_pkey,
  ADD COLUMN blob_id text COLLATE "C", ADD COLUMN media_type text;
UPDATE blob_use u SET blob = c.id, blob_id = b.blob_id, media_type = b.media_type
  FROM blob b JOIN (SELECT min(id) AS id, conn, sha256 FROM blob GROUP BY conn, sha256) c
  USING (conn, sha256) WHERE b.id = u.blob;
ALTER TABLE blob_use ADD PRIMARY KEY (seq, field, blob_id, blob), ALTER media_type SET NOT NULL;
DELETE FROM blob b USING blob same
  WHERE same.id < b.id AND (same.conn, same.sha256) = (b.conn, b.sha256);
DELETE FROM blob_part p WHERE NOT EXISTS (SELECT 1 FROM blob WHERE id = p.blob);
ALTER TABLE blob DROP COLUMN blob_id, DROP COLUMN media_type, ADD UNIQUE (sha256, conn);
DROP INDEX blob_use_seq;
CREATE INDEX blob_use_blob ON blob_use (blob);
CREATE INDEX blob_use_name ON blob_use (blob_id);
