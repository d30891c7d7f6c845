"""The layout of a store in a PostgreSQL database, and its versioned migrations.

It has the tables of the file (sqlite/ddl.py) with these differences:

* Values are compared by `key` (keys.py), which sorts as SQLite sorts numbers and text; `number`
  keeps the number itself. Text that may hold U+0000 is `bytea`.
* `term` has a row for each searched value of at most 2,048 characters, `passage` one for each
  passage of a longer one. `terms` is written by us, not by `to_tsvector`: folded words with their
  positions, pairs of adjacent characters of scripts without spaces, and lexemes for the scope, that
  the index can cut by: `@c7` a connection, `@12` a field, `@s345` the record of a passage.
* The indexes of words are made by the first `finish`, after the first load.
* `counter` has one row. It is changed last in every transaction and so puts all commits in one
  order: `version` is that of the last change, `generation` counts commits, `catalog` those that
  changed a connection or a stream.
* Every row of data names its connection. A role of web processes sees those that the transaction
  names, whatever our own check of the grant lets through.
"""

from threading import Event
from typing import Any, Final

import psycopg

from evidence.errors import Unavailable
from evidence.fold import FOLD_VERSION
from evidence.work import Deadline

#: Numbers of records and large values are taken by so many.
BLOCK: Final = 1_000
#: The indexes of words, by table.
INDEXES: Final = {"term": "term_terms", "passage": "passage_terms"}
_LOCK: Final = 7_310_579_021
_LOCK_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.1

_VERSION_1 = f"""
CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE counter (
  generation bigint NOT NULL, catalog bigint NOT NULL, version bigint NOT NULL
);
INSERT INTO counter VALUES (1, 1, 0);
CREATE SEQUENCE record_seq INCREMENT {BLOCK};
CREATE SEQUENCE value_seq INCREMENT {BLOCK};

CREATE TABLE connection (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  connection_id text COLLATE "C" NOT NULL UNIQUE,
  connector_key text NOT NULL,
  display_name text,
  languages text NOT NULL DEFAULT '[]'
);
CREATE TABLE stream (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conn integer NOT NULL REFERENCES connection(id),
  name text COLLATE "C" NOT NULL,
  manifest text NOT NULL,
  records bigint NOT NULL DEFAULT 0,
  UNIQUE (conn, name)
);
CREATE TABLE scope (
  ordinal integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream integer NOT NULL REFERENCES stream(id),
  field text COLLATE "C" NOT NULL,
  searchable boolean NOT NULL DEFAULT false,
  words bigint NOT NULL DEFAULT 0,
  UNIQUE (stream, field)
);

CREATE TABLE record (
  seq bigint PRIMARY KEY,
  conn integer NOT NULL,
  stream integer NOT NULL,
  record_key text COLLATE "C" NOT NULL,
  at bigint,
  cursor bytea NOT NULL,
  thread bytea,
  place bytea,
  deleted boolean NOT NULL DEFAULT false,
  UNIQUE (stream, record_key)
);
CREATE INDEX record_at ON record (stream, at) WHERE NOT deleted;
CREATE INDEX record_cursor ON record (stream, cursor, record_key) WHERE NOT deleted;
CREATE INDEX record_thread ON record (stream, thread, place, record_key)
  WHERE NOT deleted AND thread IS NOT NULL;
CREATE TABLE document (
  seq bigint PRIMARY KEY,
  conn integer NOT NULL,
  emitted_at text NOT NULL,
  data text NOT NULL,
  big text,
  changed text
);
CREATE TABLE tombstone (seq bigint PRIMARY KEY, conn integer NOT NULL, deleted_at text NOT NULL);
CREATE TABLE chunk (
  value bigint NOT NULL,
  no integer NOT NULL,
  conn integer NOT NULL,
  text bytea NOT NULL,
  PRIMARY KEY (value, no)
);
CREATE TABLE cell (
  seq bigint NOT NULL,
  ordinal integer NOT NULL,
  conn integer NOT NULL,
  key bytea NOT NULL,
  number numeric,
  PRIMARY KEY (seq, ordinal)
);
CREATE INDEX cell_key ON cell (ordinal, key, seq) INCLUDE (number);
CREATE TABLE change (
  stream integer NOT NULL,
  version bigint NOT NULL,
  seq bigint NOT NULL,
  conn integer NOT NULL,
  fields text,
  PRIMARY KEY (stream, version)
);
CREATE INDEX change_seq ON change (seq, version);

CREATE TABLE term (
  seq bigint NOT NULL,
  ordinal integer NOT NULL,
  conn integer NOT NULL,
  words integer NOT NULL,
  terms tsvector NOT NULL,
  PRIMARY KEY (seq, ordinal)
) WITH (toast_tuple_target = 8160);
CREATE TABLE passage (
  seq bigint NOT NULL,
  ordinal integer NOT NULL,
  start integer NOT NULL,
  conn integer NOT NULL,
  terms tsvector NOT NULL,
  PRIMARY KEY (seq, ordinal, start)
) WITH (toast_tuple_target = 8160);
ALTER TABLE term ALTER terms SET STORAGE MAIN;
ALTER TABLE passage ALTER terms SET STORAGE MAIN;
CREATE TABLE word_count (
  word text COLLATE "C" NOT NULL,
  ordinal integer NOT NULL,
  conn integer NOT NULL,
  n integer NOT NULL,
  PRIMARY KEY (word, ordinal)
) WITH (fillfactor = 70);
CREATE TABLE letter (char text COLLATE "C" PRIMARY KEY);

CREATE TABLE blob (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conn integer NOT NULL,
  blob_id text COLLATE "C" NOT NULL,
  media_type text NOT NULL,
  size_bytes bigint NOT NULL,
  sha256 text NOT NULL,
  UNIQUE (conn, blob_id)
);
CREATE INDEX blob_name ON blob (blob_id);
CREATE TABLE blob_part (
  blob bigint NOT NULL,
  no integer NOT NULL,
  conn integer NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (blob, no)
);
ALTER TABLE blob_part ALTER data SET STORAGE EXTERNAL;
CREATE TABLE blob_use (
  blob bigint NOT NULL,
  seq bigint NOT NULL,
  field text COLLATE "C" NOT NULL,
  conn integer NOT NULL,
  PRIMARY KEY (blob, seq, field)
);
CREATE INDEX blob_use_seq ON blob_use (seq);

CREATE TABLE "grant" (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  grant_id text COLLATE "C" NOT NULL UNIQUE,
  token_hash bytea NOT NULL UNIQUE,
  label text,
  document text NOT NULL,
  created_at text NOT NULL,
  expires_at text,
  revoked_at text
);
CREATE TABLE package (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  package_id text COLLATE "C" NOT NULL UNIQUE,
  token_hash bytea NOT NULL UNIQUE,
  label text,
  created_at text NOT NULL,
  expires_at text,
  revoked_at text
);
CREATE TABLE member (
  package bigint NOT NULL REFERENCES package(id),
  no integer NOT NULL,
  name text NOT NULL,
  grant_id text NOT NULL,
  held text NOT NULL,
  origin text,
  token text,
  PRIMARY KEY (package, no)
);
"""

#: Tables that a role of web processes reads by key: it sees the rows of the connections that its
#: transaction names. Row security would keep an index of words from being used, so those tables
#: have views, and the role may not read the tables themselves.
GUARDED: Final = ("record", "document", "tombstone", "chunk", "cell", "change", "blob_use")
VIEWED: Final = ("term", "passage", "word_count")
_SEEN = "conn = ANY((SELECT rung_conns())::integer[])"
_WALL = (
    """
CREATE FUNCTION rung_conns() RETURNS integer[] STABLE LANGUAGE sql AS
  $$ SELECT coalesce(nullif(current_setting('rung.conns', true), ''), '{}')::integer[] $$;
"""
    + "".join(
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"
        f"CREATE POLICY seen ON {table} FOR SELECT USING ({_SEEN});"
        for table in GUARDED
    )
    + "".join(
        f"CREATE VIEW {table}_seen AS SELECT * FROM {table} WHERE {_SEEN};" for table in VIEWED
    )
)
#: What a role of web processes needs, and no more.
WEB_GRANT: Final = (
    'GRANT SELECT ON meta, counter, connection, stream, scope, letter, blob, blob_part, "grant", '
    f"package, member, {', '.join(GUARDED)}, {', '.join(f'{one}_seen' for one in VIEWED)} TO "
)

MIGRATIONS: Final[tuple[str, ...]] = (_VERSION_1 + _WALL,)
#: The layouts that can be read.
READABLE: Final = range(1, len(MIGRATIONS) + 1)

_LAYOUT = "SELECT value FROM meta WHERE key = 'layout'"
_KEEP = """
INSERT INTO meta (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""


def migrate(db: psycopg.Connection[Any], secret: str) -> None:
    """Brings a store to the newest layout, in one transaction; makes it, with a secret, if new.

    The lock of those who migrate is polled: who waited in it would hold back index builds. A
    statement that waits for a table gives way to readers, and is tried again.
    """
    if layout(db) == len(MIGRATIONS):
        return
    deadline, pause = Deadline.after(_LOCK_SECONDS), Event()
    while not deadline.expired():
        try:
            with db.transaction():
                db.execute("SET LOCAL lock_timeout = '300ms'")
                row = db.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone()
                if row and row[0]:
                    _migrate(db, secret)
                    return
        except psycopg.errors.LockNotAvailable:
            pass
        pause.wait(_POLL_SECONDS)
    raise Unavailable("Another process has been migrating the store for a minute. Try again.")


def _migrate(db: psycopg.Connection[Any], secret: str) -> None:
    found = layout(db)
    for script in MIGRATIONS[found:]:
        db.execute(script)
    if found == 0:
        for key, value in (("secret", secret), ("fold_version", FOLD_VERSION)):
            db.execute(_KEEP, (key, value))
    db.execute(_KEEP, ("layout", str(len(MIGRATIONS))))


def layout(db: psycopg.Connection[Any]) -> int:
    """The layout of the store; 0 if there is none."""
    there = db.execute("SELECT to_regclass('meta')").fetchone()
    if there is None or there[0] is None:
        return 0
    row = db.execute(_LAYOUT).fetchone()
    return int(row[0]) if row else 0
