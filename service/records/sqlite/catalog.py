"""Connections, streams and blobs as rows, and the ordinals of fields.

An ordinal is the number of a (stream, field) in full-text row ids and cells. A connection has a
block of ordinals, a stream has a block inside it, and the fields of a stream are adjacent, so that
a grant of a whole connection is one range of row ids. A stream that outgrows its block gets the
next free one; a connection gets one after the last.
"""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice

from service.records.writing.attachments import Attachment, parts
from evidence.manifest import StreamManifest
from service.records.engine.scopes import Scopes
from service.records.sql.conditions import Statements
from service.records.sqlite.ddl import CONNECTION_BLOCK, STREAM_BLOCK
from service.records.sqlite.transactions import Transactions

_USE = """
INSERT OR IGNORE INTO blob_use (blob, seq, field, blob_id, media_type) VALUES (?, ?, ?, ?, ?)
"""
_RELEASE = """
DELETE FROM blob_use WHERE seq = ?1 AND (?2 IS NULL OR field = ?2) RETURNING blob
"""
_KNOWN = "SELECT 1 FROM connection WHERE connection_id = ?"
_ADD = "INSERT INTO connection (connection_id, connector_key, first_ordinal) VALUES (?, ?, ?)"
_DESCRIBE = """
UPDATE connection SET connector_key = coalesce(?, connector_key),
  display_name = coalesce(?, display_name) WHERE connection_id = ? RETURNING id
"""


class Catalog(Transactions):
    """The methods of a writer for connections, streams and blobs; see `writing.Writing`."""

    # The names of hidden streams sort before all others.
    statements = Statements("connection", "s.name >= char(1)")

    def save_connection(
        self, connection_id: str, connector_key: str | None, label: str | None
    ) -> int:
        if self.row(_KNOWN, connection_id) is None:
            key = connector_key or connection_id
            self.run(_ADD, connection_id, key, first_ordinal(self.db))
        ((id,),) = self.run(_DESCRIBE, connector_key, label, connection_id)
        return int(id)

    def allot(self, stream: int, manifest: StreamManifest) -> Scopes:
        known = dict(
            self.db.execute("SELECT field, ordinal FROM scope WHERE stream = ?", (stream,))
        )
        wanted = list(dict.fromkeys((*manifest.lexical_fields, *manifest.cell_fields)))
        missing = [name for name in wanted if name not in known]
        free = _free_ordinals(self.db, stream, known.values(), len(missing))
        known.update(zip(missing, free))
        self.db.executemany(
            "INSERT INTO scope (ordinal, stream, field, searchable) VALUES (?, ?, ?, 0)",
            [(known[name], stream, name) for name in missing],
        )
        self.db.executemany(
            "UPDATE scope SET searchable = ? WHERE ordinal = ?",
            [(name in manifest.lexical_fields, ordinal) for name, ordinal in known.items()],
        )
        return Scopes.of(manifest, known)

    # Blobs are stored once per connection, with the fields that use them

    def refer(self, blob: int, seq: int, by: Attachment) -> None:
        self.run(_USE, blob, seq, by.field, by.blob_id, by.media_type)

    def add_parts(self, connection: int, blob: int, content: bytes) -> None:
        for no, part in enumerate(parts(content)):
            self.run("INSERT INTO blob_part (blob, no, data) VALUES (?, ?, ?)", blob, no, part)

    def release(self, fields: Sequence[tuple[int, str | None]]) -> set[int]:
        return {blob for place in fields for (blob,) in self.run(_RELEASE, *place)}

    def sweep(self, blobs: Iterable[int]) -> None:
        for blob in blobs:
            if self.row("SELECT 1 FROM blob_use WHERE blob = ? LIMIT 1", blob) is None:
                self.run("DELETE FROM blob_part WHERE blob = ?", blob)
                self.run("DELETE FROM blob WHERE id = ?", blob)


def first_ordinal(db: sqlite3.Connection) -> int:
    """The start of the block for the next connection."""
    last = db.execute(
        "SELECT max((SELECT coalesce(max(first_ordinal), -1) FROM connection),"
        " (SELECT coalesce(max(ordinal), -1) FROM scope))"
    ).fetchone()[0]
    return 0 if last < 0 else (last // CONNECTION_BLOCK + 1) * CONNECTION_BLOCK


def _free_ordinals(
    db: sqlite3.Connection, stream: int, taken: Collection[int], count: int
) -> list[int]:
    """Free ordinals: in the blocks of a stream, then of its connection, then of the store."""
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
    """The blocks for streams in the connection's block that begins at an ordinal."""
    return range(first // STREAM_BLOCK, (first + CONNECTION_BLOCK) // STREAM_BLOCK)
