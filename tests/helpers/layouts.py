"""Stores as earlier versions left them."""

import sqlite3

from evidence.fold import fold
from service.records.sqlite import ddl
from service.records.sqlite.writer import Writer

#: The full-text tables of the third layout, and what they read.
OLD_INDEXES = ("fts", "fts_chunk", "fts_recent")
OLD_NAMES = ("fts_text", "chunk_text", "recent", "recent_text", *OLD_INDEXES)

#: What layout 4 added.
_TABLES = ("fts", "fts_passage", "passage", "word", "word_count")
_VIEWS = ("fts_text", "passage_text")
_COLUMNS = (
    "connection.languages",
    "stream.records",
    "scope.words",
    "record.thread",
    "record.place",
    "value.first_passage",
    "value.passages",
    "value.words",
)


#: The change log before layout 5.
_OLD_CHANGES = """
CREATE TABLE old_change (
  version INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, fields TEXT);
INSERT INTO old_change SELECT version, stream, seq, fields FROM change;
DROP TABLE change;
ALTER TABLE old_change RENAME TO change;
CREATE INDEX change_stream ON change(stream, version);
CREATE INDEX change_seq ON change(seq, version);
DELETE FROM meta WHERE key = 'next_version';
"""


def take_back(writer: Writer, layout: int) -> None:
    """Makes a store one of an earlier layout, its full-text tables filled."""
    db = writer.db
    db.executescript(_OLD_CHANGES)
    if layout == 4:
        db.execute(f"PRAGMA user_version = {layout}")
        return
    for name in _TABLES:
        db.execute(f"DROP TABLE {name}")
    for name in _VIEWS:
        db.execute(f"DROP VIEW {name}")
    db.execute("DROP INDEX record_thread")
    for column in _COLUMNS:
        db.execute("ALTER TABLE {} DROP COLUMN {}".format(*column.split(".")))
    db.execute("DELETE FROM meta WHERE key IN ('letters', 'next_passage')")
    _make_old_indexes(db)
    if layout < 3:
        for name in ("TABLE fts_recent", "VIEW recent_text", "TABLE recent"):
            db.execute(f"DROP {name}")
    if layout < 2:
        db.execute("DROP TABLE member")
        db.execute("DROP TABLE package")
    db.execute(f"PRAGMA user_version = {layout}")


def _make_old_indexes(db: sqlite3.Connection) -> None:
    db.create_function("fold_text", 1, fold, deterministic=True)
    for script in ddl.MIGRATIONS[:3]:
        for statement in ddl.statements(script):
            words = statement.split()
            made = words[3] if words[1] == "VIRTUAL" else words[2]
            if made in OLD_NAMES:
                db.execute(statement)
    for index in OLD_INDEXES:
        db.execute(f"INSERT INTO {index}({index}) VALUES('rebuild')")
