"""The newest records in a full-text index of their own, so that a common word costs no more there.

bm25 goes through all rows of a word before it scores the first, which in the whole index takes
longer with every record. `fts_recent` holds all rows of the records from a certain `seq` on, the
floor: those of the newest `WINDOW` records at least, of twice as many at most. It is kept where the
store is so large that this pays.

The floor is noted in `meta`, below zero while the window is not whole. Whatever writes full-text
rows says so in the same transaction (`leave`), and `refresh` makes it whole again at the end of the
import. Until then, and after an import that was killed, nothing is looked for in the window.
"""

import sqlite3
from collections.abc import Iterable

from service.records.sqlite.ddl import ORDINAL_BITS, ORDINAL_MASK, SEQ_BITS, SEQ_MASK

WINDOW = 65_536
#: A store with fewer windows of records is fast without one.
WINDOWS = 4
#: The first layout of the store that has it.
SINCE_LAYOUT = 3

#: The rows of the records from a floor on, in the order of their ids.
_ROWS = f"""
SELECT (r.seq << {ORDINAL_BITS}) | s.ordinal AS id
FROM record r
JOIN scope s ON s.stream = r.stream AND s.searchable
JOIN value v ON v.id = (s.ordinal << {SEQ_BITS}) | r.seq
WHERE r.seq >= ? ORDER BY 1
"""


def recent_id(row: int) -> int:
    """The row id in `fts_recent` of a row of `fts`."""
    return (row & SEQ_MASK) << ORDINAL_BITS | row >> SEQ_BITS


def row_of(recent: int) -> int:
    """The row id in `fts` of a row of `fts_recent`."""
    return (recent & ORDINAL_MASK) << SEQ_BITS | recent >> ORDINAL_BITS


def whole(db: sqlite3.Connection) -> bool:
    """Whether the window holds every row of its records as they are in this snapshot."""
    return _floor(db) > 0


def leave(db: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Before full-text rows change: the window is no longer whole, and these rows are out of it."""
    floor = _floor(db)
    if not floor:
        return
    _set_floor(db, -abs(floor))
    lowest = abs(floor) << ORDINAL_BITS
    old = sorted({found for found in map(recent_id, rows) if found >= lowest})
    held = [(found,) for found in old if _holds(db, found)]
    db.executemany("DELETE FROM fts_recent WHERE rowid = ?", held)
    db.executemany("DELETE FROM recent WHERE id = ?", held)


def refresh(db: sqlite3.Connection) -> None:
    """Makes the window whole, in the transaction of the caller."""
    (newest,) = db.execute("SELECT max(seq) FROM record").fetchone()
    floor = abs(_floor(db))
    if newest is None or newest <= WINDOWS * WINDOW:
        return
    if not floor or newest - floor >= 2 * WINDOW:
        floor = newest - WINDOW + 1
        db.execute("DELETE FROM recent")
        db.execute(f"INSERT INTO recent (id) {_ROWS}", (floor,))
        db.execute("INSERT INTO fts_recent (fts_recent) VALUES ('rebuild')")
    else:
        missing = f"SELECT id FROM ({_ROWS}) WHERE id NOT IN (SELECT id FROM recent)"
        new = db.execute(missing, (floor,)).fetchall()
        db.executemany("INSERT INTO recent (id) VALUES (?)", new)
        db.executemany(
            "INSERT INTO fts_recent (rowid, body) SELECT id, body FROM recent_text WHERE id = ?",
            new,
        )
    _set_floor(db, floor)


def _floor(db: sqlite3.Connection) -> int:
    """The lowest seq of the window, below zero while it is not whole, 0 where there is none."""
    row = db.execute("SELECT value FROM meta WHERE key = 'recent_floor'").fetchone()
    return 0 if row is None else int(row[0])


def _set_floor(db: sqlite3.Connection, floor: int) -> None:
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('recent_floor', ?)", (floor,))


def _holds(db: sqlite3.Connection, found: int) -> bool:
    return db.execute("SELECT 1 FROM recent WHERE id = ?", (found,)).fetchone() is not None
