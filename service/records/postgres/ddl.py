"""The schema of a store in a PostgreSQL database, and its versioned migrations.

It has the tables of the file (sqlite/ddl.py) with these differences:

* Values are compared by `key` (keys.py), which sorts as SQLite sorts numbers and text; `number`
  keeps the number itself. Text that may hold U+0000 is `bytea`.
* `term` has a row for each searched value of at most 2,048 characters, `passage` one for each
  passage of a longer one. `terms` is written by us, not by `to_tsvector`: folded words with their
  positions, pairs of adjacent characters of scripts without spaces, and lexemes for the scope, that
  the index can cut by: `@c7` a connection, `@12` a field, `@s345` the record of a passage.
  `folded` has the texts that they were made of; `start` is WHOLE for that of a short value.
* The indexes of words are made by the first `finish`, after the first load.
* `counter` has one row. It is changed last in every transaction and so puts all commits in one
  order: `version` is that of the last change, `generation` counts commits, `epoch` is that of the
  last one, `catalog` that of the last one that changed a connection or a stream.
* `commit_log` has every commit. If a standby that lacks commits becomes the primary, generations
  and versions repeat; epochs do not.
* Every row names its connection. A role of web processes sees those that the transaction names,
  whatever our own check of the grant lets through.
"""

from pathlib import Path
from threading import Event
from typing import Any, Final

import psycopg

from evidence.errors import Unavailable
from evidence.fold import FOLD_VERSION
from evidence.work import Deadline
from service.access.tables import SCRIPTS, TABLES
from service.records.sql.sources import SCRIPT as SOURCES

#: Numbers of records and large values are allocated in blocks of this size, the increment of their
#: sequences.
BLOCK: Final = 1_000
#: The indexes of words, by table.
INDEXES: Final = {"term": "term_terms", "passage": "passage_terms"}
#: The key of the words that may be misspelled. It is made anew after all words are read again.
WORD_KEY: Final = "word_key_pkey"
_FOLDER: Final = Path(__file__).parent
_LOCK: Final = 7_310_579_021
_LOCK_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.1

#: What a role of web processes reads through row security, and what only through views.
GUARDED: Final = (
    *("connection", "stream", "scope", "record", "document", "tombstone", "chunk", "cell"),
    *("change", "blob", "blob_part", "blob_use"),
    *("vector", "vectored", "vector_block"),
)
VIEWED: Final = ("term", "passage", "folded", "word_count", "word_key")
#: The start of a value that is indexed whole.
WHOLE: Final = -1
#: Exactly what a role of web processes, `{0}`, needs.
WEB_GRANT: Final = (
    'GRANT SELECT ON meta, counter, commit_log, searched, "grant", package, member, vector_set, '
    f"{', '.join(GUARDED)}, {', '.join(f'{table}_seen' for table in VIEWED)} "
    f"TO {{0}}; GRANT SELECT, INSERT, UPDATE, DELETE ON {', '.join(TABLES)} TO {{0}}"
)

#: The tables with row security, which also applies to their owner.
HELD: Final = (*GUARDED, '"grant"', "package", "member")
#: Lets the owner write to these tables and read every row until the transaction ends.
OPEN: Final = "SET LOCAL rung.writes = 'on'"

MIGRATIONS: Final = tuple(
    (_FOLDER / f"layout_{number}.sql").read_text(encoding="utf-8") for number in (1, 2, 3)
)
#: The layouts that can be read.
READABLE: Final = range(3, len(MIGRATIONS) + 1)
#: Scripts that a store runs once, by the key under which it stores how many it has run. Only those
#: of `layout` prevent an older version of Rung from reading it.
_SCRIPTS: Final = {
    "layout": MIGRATIONS,
    "wall_layout": ((_FOLDER / "row_security.sql").read_text(encoding="utf-8"),),
    "access_layout": SCRIPTS,
    "parsed_layout": ((_FOLDER / "parsed.sql").read_text(encoding="utf-8"),),
    "vector_layout": ((_FOLDER / "vectors.sql").read_text(encoding="utf-8"),),
    "source_layout": (SOURCES,),
}

_LAYOUT = "SELECT value FROM meta WHERE key = %s"
#: Stores metadata of the store under a key.
KEEP = """
INSERT INTO meta (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""


def migrate(db: psycopg.Connection[Any], secret: str) -> None:
    """Upgrades a store to the newest layout, in one transaction; creates it, with a secret, if new.

    The migration lock is polled, because waiting for it would block index builds. A statement that
    waits for a table yields to readers and is retried.
    """
    if all(layout(db, key) >= len(scripts) for key, scripts in _SCRIPTS.items()):
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
    is_new = not layout(db)
    for key, scripts in _SCRIPTS.items():
        version = layout(db, key)
        for script in scripts[version:]:
            db.execute(script)
        db.execute(KEEP, (key, str(max(version, len(scripts)))))
    if is_new:
        for key, value in (("secret", secret), ("fold_version", FOLD_VERSION)):
            db.execute(KEEP, (key, value))


def layout(db: psycopg.Connection[Any], key: str = "layout") -> int:
    """The number of scripts under a key that the store has run; 0 if there is no store."""
    there = db.execute("SELECT to_regclass('meta')").fetchone()
    if there is None or there[0] is None:
        return 0
    row = db.execute(_LAYOUT, (key,)).fetchone()
    return int(row[0]) if row else 0
