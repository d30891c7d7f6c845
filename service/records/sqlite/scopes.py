"""Ordinals: the number each (stream, field) carries in full-text row ids and cells.

A connection has a block of ordinals, a stream a block inside it, and the fields of a stream
stand side by side, so that a grant of a whole connection is one range of row ids. A stream that
outgrows its block gets the next free one; a connection gets one behind the last.
"""

import sqlite3
from collections.abc import Collection
from itertools import chain, islice

from service.records.manifest import StreamManifest
from service.records.scopes import Scopes
from service.records.sqlite.ddl import CONNECTION_BLOCK, SEQ_BITS, STREAM_BLOCK


def first_ordinal(db: sqlite3.Connection) -> int:
    """The beginning of the block that the next connection gets."""
    last = db.execute(
        "SELECT max((SELECT coalesce(max(first_ordinal), -1) FROM connection),"
        " (SELECT coalesce(max(ordinal), -1) FROM scope))"
    ).fetchone()[0]
    return 0 if last < 0 else (last // CONNECTION_BLOCK + 1) * CONNECTION_BLOCK


def allot(db: sqlite3.Connection, stream: int, manifest: StreamManifest) -> Scopes:
    """Gives every searchable or compared field of a stream its ordinal; old ones never change."""
    known = dict(db.execute("SELECT field, ordinal FROM scope WHERE stream = ?", (stream,)))
    wanted = list(dict.fromkeys((*manifest.lexical_fields, *manifest.cell_fields)))
    missing = [name for name in wanted if name not in known]
    free = _free_ordinals(db, stream, known.values(), len(missing))
    known.update(zip(missing, free))
    db.executemany(
        "INSERT INTO scope (ordinal, stream, field, searchable) VALUES (?, ?, ?, 0)",
        [(known[name], stream, name) for name in missing],
    )
    db.executemany(
        "UPDATE scope SET searchable = ? WHERE ordinal = ?",
        [(name in manifest.lexical_fields, ordinal) for name, ordinal in known.items()],
    )
    return Scopes(
        searchable={name: known[name] for name in manifest.lexical_fields},
        cells={name: known[name] for name in manifest.cell_fields},
    )


def row_id(ordinal: int, seq: int) -> int:
    """The full-text row id of a field of a record."""
    return ordinal << SEQ_BITS | seq


def _free_ordinals(
    db: sqlite3.Connection, stream: int, taken: Collection[int], count: int
) -> list[int]:
    """Ordinals of the blocks of a stream, then of free ones of its connection, then of all."""
    (first,) = db.execute(
        "SELECT first_ordinal FROM connection"
        " JOIN stream ON stream.connection = connection.id WHERE stream.id = ?",
        (stream,),
    ).fetchone()
    rows = db.execute(
        f"SELECT DISTINCT ordinal / {STREAM_BLOCK} FROM scope WHERE ordinal >= ? AND ordinal < ?",
        (first, first + CONNECTION_BLOCK),
    )
    used = {block for (block,) in rows}
    free = (block for block in _blocks(first) if block not in used)
    own = sorted({ordinal // STREAM_BLOCK for ordinal in taken})
    places = (
        block * STREAM_BLOCK + place
        for block in chain(own, free, _blocks(first_ordinal(db)))
        for place in range(STREAM_BLOCK)
    )
    return list(islice((place for place in places if place not in taken), count))


def _blocks(first: int) -> range:
    """The blocks for streams in the block of a connection that begins at an ordinal."""
    return range(first // STREAM_BLOCK, (first + CONNECTION_BLOCK) // STREAM_BLOCK)
