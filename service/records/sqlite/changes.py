"""Writes the changes of a batch of rows at once, after comparison with the store.

A change removes the replaced data from the indexes, then stores and indexes the new data. Batches
are large, because the full-text index adds the words of many records at once much faster than those
of few. So a batch keeps only the JSON of each row, and processes the rows in small pieces.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from service.records.arrivals import Arrival, Entry, Stored, by_stream
from service.records.derived import order_of
from service.records.large import Place
from service.records.manifest import StreamManifest
from service.records.scopes import StreamHandle
from service.records.sqlite import indexing
from service.records.sqlite.catalog import Catalog
from service.records.writer import Rows

_FIND = """
SELECT r.record_key, r.seq, r.deleted, CAST(d.data AS BLOB), d.big, d.emitted_at, d.changed
FROM record r LEFT JOIN document d ON d.seq = r.seq
WHERE r.stream = ? AND r.record_key IN (SELECT value FROM json_each(?))
"""
#: The second parameter of a statement with numbered parameters is the connection, which rows do not
#: have.
_ADD_RECORD = """
INSERT INTO record (seq, stream, record_key, at, cursor, thread, place)
VALUES (?1, ?3, ?4, ?5, ?6, ?7, ?8)
"""
_CHANGE_RECORD = """
UPDATE record SET at = ?, cursor = ?, thread = ?, place = ?, deleted = 0 WHERE seq = ?
"""
_ADD_DOCUMENT = """
INSERT OR REPLACE INTO document (seq, emitted_at, changed, data, big) VALUES (?1, ?3, ?4, ?5, ?6)
"""


class Changes(Catalog):
    """The verbs of a writer for records; see `writing.Writing`."""

    def new_seq(self) -> int:
        return self.take("next_seq")

    def find(self, piece: Sequence[Arrival]) -> dict[tuple[int, str], Stored]:
        found = {}
        for stream, keys in by_stream(piece).items():
            if self.row("SELECT 1 FROM record WHERE stream = ? LIMIT 1", stream):
                for key, *columns in self.db.execute(_FIND, (stream, orjson.dumps(keys).decode())):
                    found[stream, key] = Stored(*columns)
        return found

    def read_large(self, place: Place) -> str:
        return indexing.read_chunks(self.db, *place[:2])

    def put(self, rows: Rows) -> None:
        buried = [(seq,) for seq, *_ in rows.buried]
        self.run_each("UPDATE record SET deleted = 1 WHERE seq = ?", buried)
        self.run_each("DELETE FROM document WHERE seq = ?", buried)
        self.run_each("INSERT INTO tombstone (seq, deleted_at) VALUES (?1, ?3)", rows.buried)
        self.run_each(_ADD_RECORD, rows.new)
        self.run_each(_CHANGE_RECORD, rows.known)
        self.run_each("DELETE FROM tombstone WHERE seq = ?", [row[-1:] for row in rows.known])
        self.run_each(_ADD_DOCUMENT, rows.documents)

    def log(self, entries: Sequence[Entry]) -> None:
        first = self.take("next_version", len(entries))
        self.run_each(
            "INSERT INTO change (version, stream, seq, fields) VALUES (?1, ?2, ?3, ?5)",
            [(version, *entry) for version, entry in enumerate(entries, start=first)],
        )

    def index(self) -> indexing.Index:
        return indexing.Index(self)

    def order(self, manifest: StreamManifest, data: dict[str, Any]) -> tuple[Any, ...]:
        return order_of(manifest, data)

    def documents(
        self, stream: StreamHandle, after: int
    ) -> Iterator[tuple[int, dict[str, Any], dict[str, Place]]]:
        return indexing.documents(self.db, stream.id, after)

    def clear_derived(self) -> None:
        indexing.clear_derived(self.db)
        self.note_removed()
