"""Rebuilds full-text tables from the stored texts, whatever is left of them."""

import sqlite3

HASH_BYTES = 67_108_864
#: How many pieces of the index a merge waits for: half the work of the default, 4, in long imports.
AUTOMERGE = 8
SHADOWS = ("data", "idx", "docsize", "config")


def tune(db: sqlite3.Connection, index: str) -> None:
    """Sets the options of a new full-text table."""
    db.execute(f"INSERT INTO {index}({index}, rank) VALUES('hashsize', ?)", (HASH_BYTES,))
    if index == "fts":
        db.execute("INSERT INTO fts(fts, rank) VALUES('automerge', ?)", (AUTOMERGE,))


def rebuild(db: sqlite3.Connection, index: str) -> None:
    """Makes a full-text table anew, in the transaction of the caller.

    FTS5 can neither rebuild nor drop a table that it cannot open, so the schema loses it first.
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
    db.execute(f"INSERT INTO {index}({index}) VALUES('rebuild')")
