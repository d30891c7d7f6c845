-- Layout 5, the first that a release wrote. What the tables are for, and the values in braces, are in
-- ddl.py.

CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE connection (
  id INTEGER PRIMARY KEY,
  connection_id TEXT NOT NULL UNIQUE,
  connector_key TEXT NOT NULL,
  display_name TEXT,
  first_ordinal INTEGER NOT NULL UNIQUE,
  languages TEXT NOT NULL DEFAULT '[]'
);

CREATE TABLE stream (
  id INTEGER PRIMARY KEY,
  connection INTEGER NOT NULL REFERENCES connection(id),
  name TEXT NOT NULL,
  manifest TEXT NOT NULL,
  records INTEGER NOT NULL DEFAULT 0,
  UNIQUE (connection, name)
);

CREATE TABLE scope (
  ordinal INTEGER PRIMARY KEY,
  stream INTEGER NOT NULL REFERENCES stream(id),
  field TEXT NOT NULL,
  searchable INTEGER NOT NULL,
  words INTEGER NOT NULL DEFAULT 0,
  UNIQUE (stream, field)
);

CREATE TABLE record (
  seq INTEGER PRIMARY KEY,
  stream INTEGER NOT NULL REFERENCES stream(id),
  record_key TEXT NOT NULL,
  at INTEGER,
  cursor NOT NULL DEFAULT {NO_CURSOR},
  deleted INTEGER NOT NULL DEFAULT 0,
  thread,
  place,
  UNIQUE (stream, record_key)
);
CREATE INDEX record_at ON record(stream, at) WHERE deleted = 0;
CREATE INDEX record_cursor ON record(stream, cursor, record_key) WHERE deleted = 0;
CREATE INDEX record_live ON record(stream, record_key) WHERE deleted = 0;
CREATE INDEX record_thread ON record(stream, thread, place, record_key)
  WHERE deleted = 0 AND thread IS NOT NULL;

CREATE TABLE document (
  seq INTEGER PRIMARY KEY REFERENCES record(seq),
  emitted_at TEXT NOT NULL,
  data TEXT NOT NULL,
  big TEXT,
  changed TEXT
);

CREATE TABLE tombstone (
  seq INTEGER PRIMARY KEY REFERENCES record(seq),
  deleted_at TEXT NOT NULL
);

CREATE TABLE chunk (id INTEGER PRIMARY KEY, text TEXT NOT NULL);

CREATE TABLE value (
  id INTEGER PRIMARY KEY,
  first INTEGER,
  chunks INTEGER,
  first_passage INTEGER,
  passages INTEGER,
  words INTEGER
);
CREATE TABLE passage (
  id INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  start INTEGER NOT NULL
);
CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE word_count (
  word INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (word, ordinal)
) WITHOUT ROWID;

CREATE TABLE cell (
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  value NOT NULL,
  PRIMARY KEY (seq, ordinal)
) WITHOUT ROWID;
CREATE INDEX cell_value ON cell(ordinal, value, seq);

CREATE TABLE change (
  stream INTEGER NOT NULL,
  version INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  fields TEXT,
  PRIMARY KEY (stream, version)
) WITHOUT ROWID;
CREATE INDEX change_seq ON change(seq, version);

CREATE TABLE blob (
  id INTEGER PRIMARY KEY,
  connection INTEGER NOT NULL REFERENCES connection(id),
  blob_id TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  UNIQUE (connection, blob_id)
);
CREATE INDEX blob_name ON blob(blob_id);
CREATE TABLE blob_part (
  blob INTEGER NOT NULL REFERENCES blob(id),
  no INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (blob, no)
) WITHOUT ROWID;
CREATE TABLE blob_use (
  blob INTEGER NOT NULL REFERENCES blob(id),
  seq INTEGER NOT NULL,
  field TEXT NOT NULL,
  PRIMARY KEY (blob, seq, field)
) WITHOUT ROWID;
CREATE INDEX blob_use_seq ON blob_use(seq);

CREATE TABLE "grant" (
  id INTEGER PRIMARY KEY,
  grant_id TEXT NOT NULL UNIQUE,
  token_hash BLOB NOT NULL UNIQUE,
  label TEXT,
  document TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT,
  revoked_at TEXT
);
CREATE TABLE package (
  id INTEGER PRIMARY KEY,
  package_id TEXT NOT NULL UNIQUE,
  token_hash BLOB NOT NULL UNIQUE,
  label TEXT,
  created_at TEXT NOT NULL,
  expires_at TEXT,
  revoked_at TEXT
);
CREATE TABLE member (
  package INTEGER NOT NULL REFERENCES package(id),
  no INTEGER NOT NULL,
  name TEXT NOT NULL,
  grant_id TEXT NOT NULL,
  held TEXT NOT NULL,
  origin TEXT,
  token TEXT,
  PRIMARY KEY (package, no)
) WITHOUT ROWID;
