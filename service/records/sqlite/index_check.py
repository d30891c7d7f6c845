"""Samples the full-text indexes: checks whether they find words of stored texts.

SQLite reports some damage of an index as an error. An index that has lost its words, or the path to
them, answers as if nothing matched. A sample costs the same in any store.
"""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.records.sqlite.ddl import SEQ_BITS


class IndexRow(NamedTuple):
    """A row of a full-text table."""

    table: str
    row: int


def sample(db: sqlite3.Connection, rows: int) -> Iterator[IndexRow]:
    """Up to `rows` random rows that each full-text table must contain."""
    for table, draw in (("fts", _draw_value), ("fts_passage", _draw_passage)):
        drawn = (draw(db) for _ in range(rows))
        yield from (IndexRow(table, row) for row in drawn if row is not None)


def missing(db: sqlite3.Connection, places: list[IndexRow]) -> list[IndexRow]:
    """The rows that are not found by a random word of their texts."""
    return [row for row in places if not finds_one(db, row, _words(db, row))]


def finds_one(db: sqlite3.Connection, index_row: IndexRow, words: Sequence[str]) -> bool:
    """Whether a row is found by one of its words, chosen at random, if it has any."""
    if not words:
        return True
    table, row = index_row
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
    ids = db.execute(
        "SELECT (SELECT min(id) FROM passage), (SELECT max(id) FROM passage)"
    ).fetchone()
    return None if ids[0] is None else _at(db, "passage", random.randint(*ids))


def _at(db: sqlite3.Connection, table: str, row: int) -> int | None:
    """The first row from an id on, or the first of all."""
    rows = db.execute(f"SELECT id FROM {table} WHERE id >= ? ORDER BY id LIMIT 1", (row,))
    first = rows.fetchone() or db.execute(f"SELECT min(id) FROM {table}").fetchone()
    return None if first is None or first[0] is None else int(first[0])


def _words(db: sqlite3.Connection, row: IndexRow) -> list[str]:
    """The words of a row; empty if it was deleted."""
    query = f"SELECT c0 FROM {row.table}_content WHERE id = ?"
    content = db.execute(query, (row.row,)).fetchone()
    return content[0].split() if content else []
