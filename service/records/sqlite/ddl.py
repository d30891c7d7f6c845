"""The layout of the embedded store, and its versioned migrations.

How it fits together:

* `scope` gives each (stream, field) an ordinal; ordinals come in blocks, connection > stream >
  field, so that a grant of a whole connection is one range of full-text row ids.
* A full-text row is one (record, searchable field) of at most 2,048 characters: rowid = ordinal <<
  32 | seq. `fts` keeps the folded text, which search ranks records by; `document` has the original.
* A longer value is indexed as passages that overlap: rowid = ordinal << 32 | number in
  `fts_passage`, numbers count through the whole store. `passage` says whose they are and where they
  start, `value` which passages a value has, or how many words a short one. See passages.py.
* `word` is the vocabulary, `word_count` how many records hold a word in a field. A pair of adjacent
  characters of a script without spaces is a word too. `scope.words` is the length of all values of
  a field. See indexing.py.
* `record` is narrow: the time limit of a grant probes it once per match. `document` holds the JSON
  of a record without its large fields; `document.big` says where those are:
  {field: [first chunk, chunks, chars, bytes, JSON type]}. `document.emitted_at` is the time of the
  record's first version, `document.changed` the times of later changes, oldest first:
  {field: emitted_at}. A grant sees the time of the last change among its own fields.
* `record.thread` and `record.place` are the values of the fields with the roles `thread` and
  `position`, so that the neighbours of a record in its conversation are found by index.
* `chunk` rows hold 16,384 code points of a value over 64 KiB.
* `cell` holds the scalar fields a manifest declares for filters, aggregations and relations:
  times as integer microseconds since 1970, booleans as 0 and 1.
* `change` is the log behind `changes_since`: `fields` is NULL for a new or deleted record, else
  the JSON list of the top-level fields that changed. Versions ascend through the whole store; a
  stream that replaces another one has the log of that with the same versions. See staging.py.
* A stream whose name begins with NUL is hidden: it is being prepared, or waits to be erased.
* `stream.records` counts the live records, `connection.languages` lists what its texts are in.
* `member` is a grant of a package: one of this store, or with `origin` one at another server, whose
  `token` is sealed; `held` is the JSON list of [stream, connection id, connector key, label].
"""

import sqlite3
from collections.abc import Iterator

from service.records.derived import NO_CURSOR

TOKENIZER = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
SEQ_BITS = 32
SEQ_MASK = (1 << SEQ_BITS) - 1
STREAM_BLOCK = 64
CONNECTION_BLOCK = 16_384

_TABLES = f"""
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
"""
#: The full-text tables, which kept no texts before; a writer rebuilds them.
_INDEX = f"""
DROP TABLE IF EXISTS fts;
DROP TABLE IF EXISTS fts_passage;
DROP VIEW IF EXISTS fts_text;
DROP VIEW IF EXISTS passage_text;
CREATE VIRTUAL TABLE fts USING fts5(body, tokenize="{TOKENIZER}");
CREATE VIRTUAL TABLE fts_passage USING fts5(body, tokenize="{TOKENIZER}");
UPDATE meta SET value = '' WHERE key = 'fold_version';
"""

#: The steps from one layout to the next. No release wrote the first four.
LAYOUTS = {5: _TABLES, 6: _INDEX}
NEWEST = max(LAYOUTS)


def row_id(ordinal: int, seq: int) -> int:
    """The full-text row id of a field of a record."""
    return ordinal << SEQ_BITS | seq


def migrate(db: sqlite3.Connection) -> None:
    """Upgrades a store to the newest layout in one transaction. Never downgrades.

    The version is read under the lock, because two processes may open a new store at the same time.
    """
    if _version(db) == NEWEST:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        found = _version(db)
        for layout, script in LAYOUTS.items():
            for statement in _statements(script) if layout > found else ():
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {NEWEST}")
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
