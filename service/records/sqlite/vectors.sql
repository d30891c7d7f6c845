-- Vectors of texts, also created in stores that an older version of Rung made. It does not know
-- them; the keys and triggers here remove what belongs to a record that it changes or deletes.

CREATE TABLE IF NOT EXISTS vector_set (
  id INTEGER PRIMARY KEY,
  model TEXT NOT NULL UNIQUE,
  dimensions INTEGER NOT NULL,
  centre BLOB NOT NULL,
  complete INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS vector_stream (
  set_id INTEGER NOT NULL REFERENCES vector_set(id) ON DELETE CASCADE,
  stream INTEGER NOT NULL REFERENCES stream(id) ON DELETE CASCADE,
  fields TEXT NOT NULL,
  records INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (set_id, stream)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS vector_stream_stream ON vector_stream(stream);
CREATE TABLE IF NOT EXISTS vectored (
  seq INTEGER NOT NULL REFERENCES document(seq) ON DELETE CASCADE,
  set_id INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  whole INTEGER NOT NULL,
  PRIMARY KEY (seq, set_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS vectored_stream ON vectored(set_id, stream);
CREATE INDEX IF NOT EXISTS vectored_begun ON vectored(set_id, stream) WHERE whole = 0;
CREATE TABLE IF NOT EXISTS vector (
  id INTEGER PRIMARY KEY,
  set_id INTEGER NOT NULL,
  seq INTEGER NOT NULL REFERENCES document(seq) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  hash INTEGER NOT NULL,
  lot INTEGER NOT NULL,
  block INTEGER,
  slot INTEGER,
  vector BLOB NOT NULL,
  UNIQUE (seq, set_id, ordinal, start)
);
CREATE INDEX IF NOT EXISTS vector_hash ON vector(set_id, hash);
CREATE INDEX IF NOT EXISTS vector_lot ON vector(set_id, ordinal, lot) WHERE start = 0;
CREATE INDEX IF NOT EXISTS vector_loose ON vector(set_id, ordinal) WHERE block IS NULL;
CREATE TABLE IF NOT EXISTS vector_block (
  id INTEGER PRIMARY KEY,
  set_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  width INTEGER NOT NULL,
  gone INTEGER NOT NULL DEFAULT 0,
  entries BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS vector_block_field ON vector_block(set_id, ordinal);

CREATE TRIGGER IF NOT EXISTS vector_gone AFTER DELETE ON vector WHEN old.block IS NOT NULL BEGIN
  UPDATE vector_block SET gone = gone + 1, entries = CAST(
    substr(entries, 1, old.slot * width) || zeroblob(width)
      || substr(entries, (old.slot + 1) * width + 1) AS BLOB)
  WHERE id = old.block;
END;
CREATE TRIGGER IF NOT EXISTS vectored_more AFTER INSERT ON vectored BEGIN
  UPDATE vector_stream SET records = records + 1
  WHERE set_id = new.set_id AND stream = new.stream;
END;
CREATE TRIGGER IF NOT EXISTS vectored_fewer AFTER DELETE ON vectored BEGIN
  UPDATE vector_stream SET records = records - 1
  WHERE set_id = old.set_id AND stream = old.stream;
END;

-- Each commit that may change records has a random epoch. Every version of Rung writes this key then.
CREATE TRIGGER IF NOT EXISTS meta_epoch AFTER INSERT ON meta WHEN new.key = 'next_seq' BEGIN
  INSERT OR REPLACE INTO meta (key, value) VALUES ('epoch', lower(hex(randomblob(8))));
END;

-- A grant that is changed by hand counts at once too.
CREATE TRIGGER IF NOT EXISTS grant_epoch AFTER UPDATE ON "grant" BEGIN
  INSERT OR REPLACE INTO meta (key, value) VALUES ('epoch', lower(hex(randomblob(8))));
END;
