"""The layout of the embedded store, and its versioned migrations.

How it fits together:

* `scope` gives each (stream, field) an ordinal; ordinals come in blocks, connection > stream >
  field, so that a grant of a whole connection is one range of full-text row ids.
* A full-text row is one (record, searchable field): rowid = ordinal << 32 | seq. The text lives in
  `document` (or in `chunk` when large); `fts` indexes the folded text it reads through a view.
* `record` is narrow: the time limit of a grant probes it once per match. `document` holds the JSON
  of a record without its large fields; `document.big` says where those are:
  {field: [first chunk, chunks, chars, bytes, JSON type]}. `document.emitted_at` is the time of the
  record's first version, `document.changed` the times of later changes, oldest first:
  {field: emitted_at}. A grant sees the time of the last change among its own fields.
* `chunk` rows hold 16,384 code points; the id after a value's last chunk is never used, so that a
  chunk can be indexed with the beginning of the next one.
* `cell` holds the scalar fields a manifest declares for filters, aggregations and relations:
  times as integer microseconds since 1970, booleans as 0 and 1.
* `change` is the log behind `changes_since`: `fields` is NULL for a new or deleted record, else
  the JSON list of the top-level fields that changed.
* `fts_recent` indexes once more the full-text rows of the newest records, each listed in `recent`.
  Its row ids are seq << 31 | ordinal: in their order, from the end, are the newest matches. See
  recent.py.
* `member` is a grant of a package: one of this store, or with `origin` one at another server, whose
  `token` is sealed; `held` is the JSON list of [stream, connection id, connector key, label].
"""

import sqlite3
from collections.abc import Iterator

TOKENIZER = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
SEQ_BITS = 32
SEQ_MASK = (1 << SEQ_BITS) - 1
# Of row ids that begin with the seq, in `recent`: ordinals have what is left of 63 bits.
ORDINAL_BITS = 31
ORDINAL_MASK = (1 << ORDINAL_BITS) - 1
STREAM_BLOCK = 64
CONNECTION_BLOCK = 16_384
BLOB_PART_BYTES = 262_144
# What `record.cursor` holds for a record without a value: sorts before every other value, so that
# one row-value comparison pages through everything, and such records come last, newest first.
NO_CURSOR = -(1 << 63)

_VERSION_1 = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE connection (
  id INTEGER PRIMARY KEY,
  connection_id TEXT NOT NULL UNIQUE,
  connector_key TEXT NOT NULL,
  display_name TEXT,
  first_ordinal INTEGER NOT NULL UNIQUE
);

CREATE TABLE stream (
  id INTEGER PRIMARY KEY,
  connection INTEGER NOT NULL REFERENCES connection(id),
  name TEXT NOT NULL,
  manifest TEXT NOT NULL,
  UNIQUE (connection, name)
);

CREATE TABLE scope (
  ordinal INTEGER PRIMARY KEY,
  stream INTEGER NOT NULL REFERENCES stream(id),
  field TEXT NOT NULL,
  searchable INTEGER NOT NULL,
  UNIQUE (stream, field)
);

CREATE TABLE record (
  seq INTEGER PRIMARY KEY,
  stream INTEGER NOT NULL REFERENCES stream(id),
  record_key TEXT NOT NULL,
  at INTEGER,
  cursor NOT NULL DEFAULT {NO_CURSOR},
  deleted INTEGER NOT NULL DEFAULT 0,
  UNIQUE (stream, record_key)
);
CREATE INDEX record_at ON record(stream, at) WHERE deleted = 0;
CREATE INDEX record_cursor ON record(stream, cursor, record_key) WHERE deleted = 0;
CREATE INDEX record_live ON record(stream, record_key) WHERE deleted = 0;

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

CREATE TABLE value (id INTEGER PRIMARY KEY, first INTEGER, chunks INTEGER);

CREATE TABLE cell (
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  value NOT NULL,
  PRIMARY KEY (seq, ordinal)
) WITHOUT ROWID;
CREATE INDEX cell_value ON cell(ordinal, value, seq);

CREATE TABLE change (
  version INTEGER PRIMARY KEY,
  stream INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  fields TEXT
);
CREATE INDEX change_stream ON change(stream, version);
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

CREATE VIEW fts_text AS
  SELECT v.id AS id,
    CASE WHEN v.first IS NULL THEN fold_field(d.data, s.field)
    ELSE fold_text((SELECT group_concat(text, '') FROM (
      SELECT text FROM chunk WHERE id BETWEEN v.first AND v.first + v.chunks - 1 ORDER BY id)))
    END AS body
  FROM value v
  JOIN document d ON d.seq = v.id & {SEQ_MASK}
  JOIN scope s ON s.ordinal = v.id >> {SEQ_BITS};
CREATE VIRTUAL TABLE fts USING fts5(
  body, content='fts_text', content_rowid='id', tokenize="{TOKENIZER}");

CREATE VIEW chunk_text AS
  SELECT c.id AS id, fold_text(c.text || coalesce(
    (SELECT substr(n.text, 1, 64) FROM chunk n WHERE n.id = c.id + 1), '')) AS body
  FROM chunk c;
CREATE VIRTUAL TABLE fts_chunk USING fts5(
  body, content='chunk_text', content_rowid='id', tokenize="{TOKENIZER}");
"""

_VERSION_2 = """
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
"""

_VERSION_3 = f"""
CREATE TABLE recent (id INTEGER PRIMARY KEY);
CREATE VIEW recent_text AS
  SELECT r.id AS id, t.body AS body FROM recent r
  JOIN fts_text t
    ON t.id = ((r.id & {ORDINAL_MASK}) << {SEQ_BITS}) | (r.id >> {ORDINAL_BITS});
CREATE VIRTUAL TABLE fts_recent USING fts5(
  body, content='recent_text', content_rowid='id', tokenize="{TOKENIZER}");
INSERT INTO fts_recent (fts_recent, rank) VALUES ('hashsize', 67108864);
"""

MIGRATIONS: tuple[str, ...] = (_VERSION_1, _VERSION_2, _VERSION_3)
#: The layouts that can be read as they are: the third adds nothing an answer cannot do without.
READABLE = range(2, len(MIGRATIONS) + 1)


def migrate(db: sqlite3.Connection) -> None:
    """Brings a store to the newest layout, one transaction per version. Never goes back.

    The version is read inside the lock: two processes may open a new store at the same moment.
    """
    for number, script in enumerate(MIGRATIONS, start=1):
        if _version(db) >= number:
            continue
        db.execute("BEGIN IMMEDIATE")
        try:
            if _version(db) < number:
                for statement in _statements(script):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, which `executescript` would commit one by one."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
