"""Large values as chunk rows, and the texts that the full-text index is made of."""

import sqlite3

import orjson

from evidence.pointer import find, searched_text


def read_chunks(db: sqlite3.Connection, first: int, chunks: int) -> str:
    """The whole text of a large value."""
    rows = db.execute(
        "SELECT text FROM chunk WHERE id >= ? AND id < ? ORDER BY id", (first, first + chunks)
    )
    return "".join(row[0] for row in rows)


_WHERE_TEXT_IS = """
SELECT d.data, s.field FROM document d JOIN scope s ON s.ordinal = ? WHERE d.seq = ?
"""


def read_text(
    db: sqlite3.Connection, seq: int, ordinal: int, first: int | None, chunks: int | None
) -> str:
    """The whole text of a value that is indexed."""
    if first is not None:
        return read_chunks(db, first, chunks or 0)
    data, field = db.execute(_WHERE_TEXT_IS, (ordinal, seq)).fetchone()
    return searched_text(find(orjson.loads(data), field))
