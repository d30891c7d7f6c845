"""Empties what is derived from records, whatever state it is in."""

import sqlite3

from service.records.sqlite.transactions import INDEXES, tune
from service.records.sqlite.vocabulary import forget

SHADOWS = ("data", "idx", "docsize", "config")


def clear(db: sqlite3.Connection) -> None:
    """Empties the full-text tables, the vocabulary, the passages and the cells."""
    for index in INDEXES:
        _renew(db, index)
    forget(db)
    for table in ("value", "passage", "cell"):
        db.execute(f"DELETE FROM {table}")


def _renew(db: sqlite3.Connection, index: str) -> None:
    """Makes a full-text table anew, empty.

    FTS5 cannot drop a table that it cannot open, so the schema loses it first.
    """
    (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    db.execute("PRAGMA writable_schema = ON")
    try:
        db.execute("DELETE FROM sqlite_master WHERE name = ?", (index,))
    finally:
        db.execute("PRAGMA writable_schema = RESET")
    for shadow in SHADOWS:
        db.execute(f"DROP TABLE IF EXISTS {index}_{shadow}")
    db.execute(sql)
    tune(db, index)
