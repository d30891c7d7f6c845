"""Samples of the full-text indexes: whether words of stored texts are found through them.

SQLite reports some damage of an index as an error. An index that has lost its words, or the way to
them, answers like one in which nothing matches. A sample costs the same in any store.
"""

import random
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from evidence.fold import fold
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.records.passages import fold_passage, starts
from service.records.sqlite.ddl import SEQ_BITS, SEQ_MASK
from service.records.sqlite.passages import read_text
from service.records.sqlite.failures import index_damaged
from service.records.sqlite.snapshot import SqliteSnapshot

_PASSAGE = f"""
SELECT p.seq, p.start, v.first, v.chunks FROM passage p
JOIN value v ON v.id = (p.id >> {SEQ_BITS} << {SEQ_BITS}) | p.seq WHERE p.id = ?
"""


class Place(NamedTuple):
    """A row of a full-text table."""

    table: str
    row: int


class IndexCheck:
    """Whether the full-text indexes of a store are whole, as far as samples show.

    Samples are `index_check_seconds` apart. Rows that were not found are looked for again in the
    next one, so that damage stays known until it is repaired. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: Deadline | None = None
        self._missing: list[Place] = []

    def require(self, snapshot: SqliteSnapshot) -> None:
        """Raises `Unavailable` if a sample has shown damage; takes one if it is time."""
        if self._next is None or self._next.expired():
            with self._lock:
                if self._next is None or self._next.expired():
                    places = [*self._missing, *sample(snapshot.db, BUDGETS.index_check_rows)]
                    self._missing = missing(snapshot.db, places)
                    self._next = Deadline.after(BUDGETS.index_check_seconds)
        if self._missing:
            raise index_damaged()


def sample(db: sqlite3.Connection, rows: int) -> Iterator[Place]:
    """Up to `rows` random rows that each full-text table must hold."""
    for table, draw in _DRAWS.items():
        for _ in range(rows):
            row = draw(db)
            if row is None:
                break
            yield Place(table, row)


def missing(db: sqlite3.Connection, places: list[Place]) -> list[Place]:
    """Those of some rows that are not found by a random word of their texts."""
    return [place for place in places if not _is_found(db, place)]


def _is_found(db: sqlite3.Connection, place: Place) -> bool:
    table, row = place
    words = _WORDS[table](db, row).split()
    if not words:
        return True
    found = db.execute(
        f"SELECT 1 FROM {table} WHERE {table} MATCH ? AND rowid = ?",
        (f'"{random.choice(words)}"', row),
    )
    return found.fetchone() is not None


def _draw_value(db: sqlite3.Connection) -> int | None:
    (newest,) = db.execute("SELECT max(seq) FROM record").fetchone()
    scopes = db.execute("SELECT ordinal FROM scope WHERE searchable").fetchall()
    if not scopes or newest is None:
        return None
    (ordinal,) = random.choice(scopes)
    return _at(db, "value", ordinal << SEQ_BITS | random.randint(0, newest))


def _draw_passage(db: sqlite3.Connection) -> int | None:
    # One statement with both would read the whole table.
    found = db.execute(
        "SELECT (SELECT min(id) FROM passage), (SELECT max(id) FROM passage)"
    ).fetchone()
    return None if found[0] is None else _at(db, "passage", random.randint(*found))


def _at(db: sqlite3.Connection, table: str, row: int) -> int | None:
    """The first row from an id on, or the first of all."""
    found = db.execute(f"SELECT id FROM {table} WHERE id >= ? ORDER BY id LIMIT 1", (row,))
    first = found.fetchone() or db.execute(f"SELECT min(id) FROM {table}").fetchone()
    return None if first is None or first[0] is None else int(first[0])


def _words_of_value(db: sqlite3.Connection, row: int) -> str:
    """The folded text of a row of `fts`; empty if there is none."""
    found = db.execute("SELECT passages FROM value WHERE id = ?", (row,)).fetchone()
    if found is None or found[0] is not None:
        return ""
    return fold(read_text(db, row & SEQ_MASK, row >> SEQ_BITS, None, None))


def _words_of_passage(db: sqlite3.Connection, row: int) -> str:
    """The same of a row of `fts_passage`."""
    found = db.execute(_PASSAGE, (row,)).fetchone()
    if found is None:
        return ""
    seq, start, first, chunks = found
    text = read_text(db, seq, row >> SEQ_BITS, first, chunks)
    return fold_passage(text, start, start > 0, start == starts(len(text))[-1])


_DRAWS: Mapping[str, Callable[[sqlite3.Connection], int | None]] = {
    "fts": _draw_value,
    "fts_passage": _draw_passage,
}
_WORDS: Mapping[str, Callable[[sqlite3.Connection, int], str]] = {
    "fts": _words_of_value,
    "fts_passage": _words_of_passage,
}
