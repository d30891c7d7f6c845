"""Chunk rows: the text of large values."""

import sqlite3


def read_chunks(db: sqlite3.Connection, first: int, chunks: int) -> str:
    """The whole text of a large value."""
    rows = db.execute(
        "SELECT text FROM chunk WHERE id >= ? AND id < ? ORDER BY id", (first, first + chunks)
    )
    return "".join(row[0] for row in rows)
