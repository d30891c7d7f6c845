"""Samples of the full-text indexes: whether words of stored texts are found through them.

SQLite reports some damage of an index as an error. An index that has lost its words, or the way to
them, answers like one in which nothing matches. A sample costs the same in any store.
"""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.records.passages import fold_passage, starts
from service.records.sqlite.ddl import SEQ_BITS, SEQ_MASK
from service.records.sqlite.passages import read_text

#: Where the text of a row is: (record, start, first chunk, chunks).
_TEXTS = {
    "fts": f"SELECT id & {SEQ_MASK}, 0, NULL, NULL FROM value WHERE id = ? AND passages IS NULL",
    "fts_passage": "SELECT p.seq, p.start, v.first, v.chunks FROM passage p"
    f" JOIN value v ON v.id = (p.id >> {SEQ_BITS} << {SEQ_BITS}) | p.seq WHERE p.id = ?",
}


class Place(NamedTuple):
    """A row of a full-text table."""

    table: str
    row: int


def sample(db: sqlite3.Connection, rows: int) -> Iterator[Place]:
    """Up to `rows` random rows that each full-text table must hold."""
    for table, draw in (("fts", _draw_value), ("fts_passage", _draw_passage)):
        drawn = (draw(db) for _ in range(rows))
        yield from (Place(table, row) for row in drawn if row is not None)


def missing(db: sqlite3.Connection, places: list[Place]) -> list[Place]:
    """Those of some rows that are not found by a random word of their texts."""
    return [place for place in places if not finds_one(db, place, _words(db, place))]


def finds_one(db: sqlite3.Connection, place: Place, words: Sequence[str]) -> bool:
    """Whether a row is found by a random one of its words, if it has any."""
    if not words:
        return True
    table, row = place
    match = f"SELECT 1 FROM {table} WHERE {table} MATCH ? AND rowid = ?"
    return db.execute(match, (f'"{random.choice(words)}"', row)).fetchone() is not None


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


def _words(db: sqlite3.Connection, place: Place) -> list[str]:
    """The words of the text of a row; none if it is gone."""
    found = db.execute(_TEXTS[place.table], (place.row,)).fetchone()
    if found is None:
        return []
    seq, start, first, chunks = found
    text = read_text(db, seq, place.row >> SEQ_BITS, first, chunks)
    last = (starts(len(text)) or range(1))[-1]  # a short text is one passage
    return fold_passage(text, start, start > 0, start == last).split()
