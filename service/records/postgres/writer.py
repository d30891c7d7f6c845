"""Opens a store in a database for writing, and writes batches of changes; see `writing`."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from evidence.errors import InvalidRequest, Unavailable
from evidence.fold import FOLD_VERSION
from evidence.pointer import top_level
from service.records.writing.arrivals import Arrival, Stored, by_stream
from service.records.writing.attachments import Attachment, parts
from service.records.writing.derived import order_of
from service.records.engine.content import Content
from service.records.engine.large import Place
from evidence.manifest import StreamManifest
from service.records.postgres import connections, indexing
from service.records.postgres.copying import PostgresContent
from service.records.postgres.ddl import INDEXES, MIGRATIONS, WORD_KEY, layout, migrate
from service.records.postgres.indexing import BATCH_RECORDS
from service.records.postgres.keys import group_key, key_of
from service.records.postgres.staging import ARRIVED, LOCK, Stage, staging
from service.records.postgres.transactions import Transactions
from service.records.postgres.vectors import PostgresVectors
from service.records.engine.scopes import Scopes, StreamHandle
from service.records.sql.conditions import Statements
from service.records.writing.steps import Rows
from service.records.writing import SECRET_BYTES

#: From this many records on, the planner's statistics of the tables are updated immediately.
ANALYZE_RECORDS = 1_000

_CONNECT = """
INSERT INTO connection AS c (connection_id, connector_key, display_name)
VALUES (%s, coalesce(%s::text, %s), %s) ON CONFLICT (connection_id) DO UPDATE SET
  connector_key = coalesce(%s::text, c.connector_key),
  display_name = coalesce(excluded.display_name, c.display_name)
RETURNING id
"""

_FIND = """
SELECT r.record_key, r.seq, r.deleted, d.data, d.big, d.emitted_at, d.changed, r.at
FROM record r LEFT JOIN document d USING (seq) WHERE r.stream = %s AND r.record_key = ANY(%s)
"""
_DOCUMENTS = """
SELECT d.seq, d.data, d.big FROM document d JOIN record r USING (seq)
WHERE r.stream = %s AND NOT r.deleted AND r.seq > %s ORDER BY r.seq LIMIT %s
"""
_CHANGE_RECORD = """
UPDATE record SET at = %s, cursor = %s, thread = %s, place = %s, deleted = false WHERE seq = %s
"""
#: A database is not suited to larger ones.
BLOB_BYTES = 134_217_728

_USE = """
INSERT INTO blob_use (blob, conn, seq, field, blob_id, media_type)
SELECT id, conn, %s, %s, %s, %s FROM blob WHERE id = %s ON CONFLICT DO NOTHING
"""
_RELEASE = """
DELETE FROM blob_use u USING unnest(%s::bigint[], %s::text[]) AS d(seq, field)
WHERE u.seq = d.seq AND (d.field IS NULL OR u.field = d.field) RETURNING u.blob
"""
_SWEEP = """
DELETE FROM blob b WHERE id = ANY(%s) AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob = b.id)
RETURNING id
"""


class Writer(Transactions):
    """The store in a database, open for writing. See `writing.Writing`."""

    statements = Statements("conn", "s.name <> ''")  # none is hidden

    def content(self) -> Content:
        return PostgresContent(self.db, self)

    def vectors(self) -> PostgresVectors:
        return PostgresVectors(self)

    def staging(self, targets: Sequence[tuple[str, str]]) -> AbstractContextManager[Stage]:
        return staging(self, targets)

    def finish(self) -> None:
        """Creates the indexes of words after the first load, or merges their pending entries."""
        for table, index in INDEXES.items():
            ((there,),) = self.rows_of("SELECT to_regclass(%s) IS NOT NULL", index)
            if there:
                self.rows_of("SELECT gin_clean_pending_list(%s::regclass)", index)
            else:
                self.write(f"CREATE INDEX IF NOT EXISTS {index} ON {table} USING gin (terms)")
        ((has_key,),) = self.rows_of("SELECT to_regclass(%s) IS NOT NULL", WORD_KEY)
        if not has_key:
            columns = "PRIMARY KEY (key, ordinal, word)"
            self.write(f"ALTER TABLE word_key ADD CONSTRAINT {WORD_KEY} {columns}")
        if self._written >= ANALYZE_RECORDS:
            self.write("ANALYZE")
            self._written = 0

    def rebuild(self, on_record: Callable[[], None] = lambda: None) -> None:
        with self.transaction():
            super().rebuild(on_record)
            self.finish()

    def save_connection(
        self, connection_id: str, connector_key: str | None, label: str | None
    ) -> int:
        self.changed_catalog()
        key = connector_key
        ((id,),) = self.write(_CONNECT, connection_id, key, connection_id, label, key)
        return int(id)

    def allot(self, stream: int, manifest: StreamManifest) -> Scopes:
        query = "SELECT field, ordinal, searchable FROM scope WHERE stream = %s"
        rows = self.rows_of(query, stream)
        before = {field: searchable for field, _, searchable in rows}
        fields = dict.fromkeys((*before, *manifest.lexical_fields, *manifest.cell_fields))
        after = {field: field in manifest.lexical_fields for field in fields}
        if before != after:
            self.changed_catalog()
            self.run_each(
                "INSERT INTO scope (stream, conn, field, searchable)"
                " SELECT id, conn, %s, %s FROM stream WHERE id = %s"
                " ON CONFLICT (stream, field) DO UPDATE SET searchable = excluded.searchable",
                [(field, searchable, stream) for field, searchable in after.items()],
            )
            rows = self.rows_of(query, stream)
        ordinals = {field: ordinal for field, ordinal, _ in rows}
        return Scopes.of(manifest, ordinals)

    # Records

    def new_seq(self) -> int:
        return self.fresh("record_seq")

    def find(self, arrivals: Sequence[Arrival]) -> dict[tuple[int, str], Stored]:
        """The stored records of these rows. Nobody else can change them meanwhile."""
        streams, records = by_stream(arrivals), {}
        if len(self.rows_of(LOCK, list(streams))) < len(streams):
            raise Unavailable(
                "The stream was removed while rows were being written to it. Run the command "
                "again."
            )
        for stream, keys in streams.items():
            if self.staged:
                self.copy(f"{ARRIVED} (stream, record_key)", [(stream, key) for key in keys])
            for key, seq, deleted, data, *rest in self.rows_of(_FIND, stream, keys):
                records[stream, key] = Stored(seq, deleted, data and data.encode(), *rest)
        return records

    def read_large(self, location: Place) -> str:
        return indexing.read_value(self, location[0])

    def put(self, rows: Rows) -> None:
        gone, existing = [row[0] for row in rows.buried], [row[-1] for row in rows.existing]
        if existing or gone:
            self.write("DELETE FROM document WHERE seq = ANY(%s)", existing + gone)
            self.write("DELETE FROM tombstone WHERE seq = ANY(%s)", existing)
            self.write("UPDATE record SET deleted = true WHERE seq = ANY(%s)", gone)
        self.run_each(_CHANGE_RECORD, rows.existing)
        for into, new_rows in (
            ("tombstone (seq, conn, deleted_at)", rows.buried),
            ("record (seq, conn, stream, record_key, at, cursor, thread, place)", rows.new),
            ("document (seq, conn, emitted_at, changed, data, big)", rows.documents),
        ):
            if new_rows:
                self.copy(into, new_rows)

    def index(self) -> indexing.Index:
        return indexing.Index(self)

    def order(self, manifest: StreamManifest, data: dict[str, Any]) -> tuple[Any, ...]:
        at, cursor, thread, position = order_of(manifest, data)
        return (
            at,
            key_of(cursor),
            None if thread is None else group_key(thread),
            None if position is None else key_of(position),
        )

    def documents(
        self, stream: StreamHandle, after: int
    ) -> Iterator[tuple[int, dict[str, Any], dict[str, Place]]]:
        names = set(map(top_level, (*stream.scopes.searchable, *stream.scopes.cells)))
        for seq, text, big in self.rows_of(_DOCUMENTS, stream.id, after, BATCH_RECORDS):
            yield seq, *indexing.whole(self, text, big, names)

    def clear_derived(self) -> None:
        self.write(f"DROP INDEX IF EXISTS {', '.join(INDEXES.values())}")
        self.write(f"ALTER TABLE word_key DROP CONSTRAINT IF EXISTS {WORD_KEY}")
        self.write("TRUNCATE term, passage, folded, word_count, word_key, cell")
        self.write("UPDATE scope SET words = 0")

    # Blobs are stored once per connection, with the fields that use them

    def refer(self, blob: int, seq: int, by: Attachment) -> None:
        self.write(_USE, seq, by.field, by.blob_id, by.media_type, blob)

    def add_parts(self, connection: int, blob: int, content: bytes) -> None:
        if len(content) > BLOB_BYTES:
            raise InvalidRequest(f"A blob has {len(content)} bytes; the limit is {BLOB_BYTES}.")
        pieces = ((blob, no, connection, part) for no, part in enumerate(parts(content)))
        self.copy("blob_part (blob, no, conn, data)", pieces)

    def release(self, fields: Sequence[tuple[int, str | None]]) -> set[int]:
        if not fields:
            return set()
        return {blob for (blob,) in self.write(_RELEASE, *map(list, zip(*fields)))}

    def sweep(self, blobs: Iterable[int]) -> None:
        if orphans := list(blobs):
            gone = [blob for (blob,) in self.write(_SWEEP, orphans)]
            self.write("DELETE FROM blob_part WHERE blob = ANY(%s)", gone)


def open_writer(url: str, *, lock_seconds: int | None = None) -> Writer:
    """Opens the store in a database for writing; creates its tables if necessary."""
    with connections.explained():
        db = connections.connect(url)
    try:
        with connections.explained():
            if layout(db) > len(MIGRATIONS):
                raise InvalidRequest(
                    "A newer version of Rung wrote this store. Install that version or a later one."
                )
            migrate(db, secrets.token_hex(SECRET_BYTES))
        writer = Writer(db, lock_seconds)
        if writer.meta("fold_version") != FOLD_VERSION:
            writer.rebuild()
    except BaseException:
        db.close()
        raise
    return writer
