"""What a batch of rows changes, written in one go; see `ingest` for how it is found."""

from collections.abc import Iterator, Sequence
from typing import Any

from evidence.errors import Unavailable
from evidence.pointer import top_level
from service.records.arrivals import Arrival, Stored, by_stream
from service.records.derived import order_of
from service.records.large import Place
from service.records.manifest import StreamManifest
from service.records.postgres import indexing
from service.records.postgres.attachments import Attachments
from service.records.postgres.ddl import INDEXES
from service.records.postgres.indexing import PIECE_RECORDS
from service.records.postgres.keys import group_key, key_of
from service.records.scopes import StreamHandle
from service.records.sql.writer import Rows

#: The keys of rows that came in while streams are staged; see staging.py.
ARRIVED = "arrived"
#: Locks the connections of streams, so that nobody else changes their records or removes them.
LOCK = """
SELECT s.id FROM stream s JOIN connection c ON c.id = s.conn WHERE s.id = ANY(%s) ORDER BY c.id
FOR NO KEY UPDATE OF c FOR KEY SHARE OF s
"""
_FIND = """
SELECT r.record_key, r.seq, r.deleted, d.data, d.big, d.emitted_at, d.changed
FROM record r LEFT JOIN document d USING (seq) WHERE r.stream = %s AND r.record_key = ANY(%s)
"""
_DOCUMENTS = """
SELECT d.seq, d.data, d.big FROM document d JOIN record r USING (seq)
WHERE r.stream = %s AND NOT r.deleted AND r.seq > %s ORDER BY r.seq LIMIT %s
"""
_CHANGE_RECORD = """
UPDATE record SET at = %s, cursor = %s, thread = %s, place = %s, deleted = false WHERE seq = %s
"""


class Changes(Attachments):
    """The verbs of a writer for records; see `writing.Writing`."""

    def new_seq(self) -> int:
        return self.fresh("record_seq")

    def find(self, piece: Sequence[Arrival]) -> dict[tuple[int, str], Stored]:
        """What the store has of these rows. Nobody else changes it meanwhile."""
        streams, found = by_stream(piece), {}
        if len(self.rows_of(LOCK, list(streams))) < len(streams):
            raise Unavailable("The stream was removed while rows were written to it.")
        for stream, keys in streams.items():
            if self.staged:
                self.copy(f"{ARRIVED} (stream, record_key)", [(stream, key) for key in keys])
            for key, seq, deleted, data, *rest in self.rows_of(_FIND, stream, keys):
                found[stream, key] = Stored(seq, deleted, data and data.encode(), *rest)
        return found

    def read_large(self, place: Place) -> str:
        return indexing.read_value(self, place[0])

    def put(self, rows: Rows) -> None:
        gone, known = [row[0] for row in rows.buried], [row[-1] for row in rows.known]
        if known or gone:
            self.write("DELETE FROM document WHERE seq = ANY(%s)", known + gone)
            self.write("DELETE FROM tombstone WHERE seq = ANY(%s)", known)
            self.write("UPDATE record SET deleted = true WHERE seq = ANY(%s)", gone)
        self.run_each(_CHANGE_RECORD, rows.known)
        for into, added in (
            ("tombstone (seq, conn, deleted_at)", rows.buried),
            ("record (seq, conn, stream, record_key, at, cursor, thread, place)", rows.new),
            ("document (seq, conn, emitted_at, changed, data, big)", rows.documents),
        ):
            if added:
                self.copy(into, added)

    def index(self) -> indexing.Index:
        return indexing.Index(self)

    def order(self, manifest: StreamManifest, data: dict[str, Any]) -> tuple[Any, ...]:
        at, cursor, thread, place = order_of(manifest, data)
        return (
            at,
            key_of(cursor),
            None if thread is None else group_key(thread),
            None if place is None else key_of(place),
        )

    def documents(
        self, stream: StreamHandle, after: int
    ) -> Iterator[tuple[int, dict[str, Any], dict[str, Place]]]:
        names = set(map(top_level, (*stream.scopes.searchable, *stream.scopes.cells)))
        for seq, text, big in self.rows_of(_DOCUMENTS, stream.id, after, PIECE_RECORDS):
            yield seq, *indexing.whole(self, text, big, names)

    def clear_derived(self) -> None:
        self.write(f"DROP INDEX IF EXISTS {', '.join(INDEXES.values())}")
        self.write("TRUNCATE term, passage, word_count, letter, cell")
        self.write("UPDATE scope SET words = 0")
