"""Samples of the full-text indexes: whether words of stored texts are found through them.

SQLite reports some damage of an index as an error. An index that has lost its words, or the way to
them, answers like one in which nothing matches. A sample costs the same in any store.
"""

import random
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import orjson

from evidence.fold import fold
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.records.sqlite import recent_index
from service.records.sqlite.ddl import SEQ_BITS, SEQ_MASK
from service.records.sqlite.reader import index_damaged

SAMPLE_CHARS = 2_048

_TEXT = f"""
SELECT d.data, s.field, (SELECT text FROM chunk WHERE id = v.first) FROM value v
JOIN document d ON d.seq = v.id & {SEQ_MASK} JOIN scope s ON s.ordinal = v.id >> {SEQ_BITS}
WHERE v.id = ?
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

    def require(self, db: sqlite3.Connection) -> None:
        """Raises `Unavailable` if a sample has shown damage; takes one if it is time."""
        if self._next is None or self._next.expired():
            with self._lock:
                if self._next is None or self._next.expired():
                    places = [*self._missing, *sample(db, BUDGETS.index_check_rows)]
                    self._missing = missing(db, places)
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
    text = _TEXTS[place.table](db, place.row) or ""
    words = fold(text[:SAMPLE_CHARS]).split()
    if len(text) > SAMPLE_CHARS:
        del words[-1:]
    if not words:
        return True
    table, row = place
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


def _draw_chunk(db: sqlite3.Connection) -> int | None:
    (last,) = db.execute("SELECT max(id) FROM chunk").fetchone()
    return None if last is None else _at(db, "chunk", random.randint(0, last))


def _draw_recent(db: sqlite3.Connection) -> int | None:
    if not recent_index.whole(db):
        return None
    (first,) = db.execute("SELECT min(id) FROM recent").fetchone()
    (last,) = db.execute("SELECT max(id) FROM recent").fetchone()
    return None if first is None else _at(db, "recent", random.randint(first, last))


def _at(db: sqlite3.Connection, table: str, row: int) -> int | None:
    """The first row from an id on, or the first of all."""
    found = db.execute(f"SELECT id FROM {table} WHERE id >= ? ORDER BY id LIMIT 1", (row,))
    first = found.fetchone() or db.execute(f"SELECT min(id) FROM {table}").fetchone()
    return None if first is None or first[0] is None else int(first[0])


def _value_text(db: sqlite3.Connection, row: int) -> str | None:
    found = db.execute(_TEXT, (row,)).fetchone()
    if found is None:
        return None
    data, field, chunk = found
    value = orjson.loads(data).get(field) if chunk is None else chunk
    return value if isinstance(value, str) else None


def _chunk_text(db: sqlite3.Connection, row: int) -> str | None:
    found = db.execute("SELECT text FROM chunk WHERE id = ?", (row,)).fetchone()
    return None if found is None else str(found[0])


def _recent_text(db: sqlite3.Connection, row: int) -> str | None:
    listed = db.execute("SELECT 1 FROM recent WHERE id = ?", (row,)).fetchone()
    return _value_text(db, recent_index.row_of(row)) if listed and recent_index.whole(db) else None


_DRAWS: Mapping[str, Callable[[sqlite3.Connection], int | None]] = {
    "fts": _draw_value,
    "fts_chunk": _draw_chunk,
    "fts_recent": _draw_recent,
}
_TEXTS: Mapping[str, Callable[[sqlite3.Connection, int], str | None]] = {
    "fts": _value_text,
    "fts_chunk": _chunk_text,
    "fts_recent": _recent_text,
}
