"""Opening a store in a database for writing, and its verbs; see `writing.Writing`."""

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import orjson

from evidence.errors import InvalidRequest
from evidence.fold import FOLD_VERSION
from service.records.arrivals import Arrival, Change, Stored
from service.records.languages import Sample
from service.records.large import Place
from service.records.manifest import StreamManifest
from service.records.postgres import changes, connections, indexing
from service.records.postgres.ddl import INDEXES, MIGRATIONS, layout, migrate
from service.records.postgres.transactions import Transactions
from service.records.scopes import Scopes
from service.records.streams import manifests_of, open_stream
from service.records.writing import SECRET_BYTES, StreamCount

#: From so many records on, what the planner knows of the tables is brought up to date at once.
ANALYZE_RECORDS = 1_000

_CONNECT = """
INSERT INTO connection AS c (connection_id, connector_key, display_name)
VALUES (%s, coalesce(%s::text, %s), %s) ON CONFLICT (connection_id) DO UPDATE SET
  connector_key = coalesce(%s::text, c.connector_key),
  display_name = coalesce(excluded.display_name, c.display_name)
RETURNING id
"""
_COUNTS = """
SELECT c.connection_id, s.name, count(r.seq) FILTER (WHERE NOT r.deleted),
  count(r.seq) FILTER (WHERE r.deleted)
FROM stream s JOIN connection c ON c.id = s.conn LEFT JOIN record r ON r.stream = s.id
GROUP BY c.connection_id, s.name ORDER BY 1, 2
"""


class Writer(Transactions):
    """The store in a database, open for writing. See `writing.Writing`."""

    engine = "postgres"

    def finish(self) -> None:
        """Creates the indexes of words after the first load, or merges their pending entries."""
        for table, index in INDEXES.items():
            ((there,),) = self.rows_of("SELECT to_regclass(%s) IS NOT NULL", index)
            if there:
                self.rows_of("SELECT gin_clean_pending_list(%s::regclass)", index)
            else:
                self.write(f"CREATE INDEX IF NOT EXISTS {index} ON {table} USING gin (terms)")
        if self._written >= ANALYZE_RECORDS:
            self.write("ANALYZE")
            self._written = 0

    def rebuild(self, on_record: Callable[[], None] = lambda: None) -> None:
        sample = Sample()

        def look(connection: int, data: dict[str, Any]) -> None:
            sample.take(connection, data)
            on_record()

        with self.transaction():
            self.write(f"DROP INDEX IF EXISTS {', '.join(INDEXES.values())}")
            self.write("TRUNCATE term, passage, word_count, letter, cell")
            self.write("UPDATE scope SET words = 0")
            for connection in self.connection_ids():
                for manifest in manifests_of(self, connection):
                    stream = open_stream(self, connection, manifest.name)
                    new = stream.manifest, stream.scopes
                    place = stream.id, stream.connection
                    one = partial(look, stream.connection)
                    count = indexing.derive(self, place, new, look=one)
                    self.write("UPDATE stream SET records = %s WHERE id = %s", count, stream.id)
                    self._written += count
            changes.note_languages(self, sample)
            self.set_meta("fold_version", FOLD_VERSION)
            self.changed_catalog()
            self.finish()

    def save_connection(
        self, connection_id: str, connector_key: str | None, label: str | None
    ) -> int:
        self.changed_catalog()
        key = connector_key
        ((id,),) = self.rows_of(_CONNECT, connection_id, key, connection_id, label, key)
        return int(id)

    def connection_ids(self) -> list[str]:
        sql = "SELECT DISTINCT connection_id FROM connection c JOIN stream s ON s.conn = c.id"
        return [id for (id,) in self.rows_of(f"{sql} ORDER BY 1")]

    def manifest_rows(self, connection_id: str) -> Sequence[tuple[str, str]]:
        sql = "SELECT name, manifest FROM stream s JOIN connection c ON c.id = s.conn"
        rows = self.rows_of(f"{sql} WHERE connection_id = %s ORDER BY name", connection_id)
        return [(name, manifest) for name, manifest in rows]

    def find_stream(self, connection_id: str, row_name: str) -> tuple[int, int] | None:
        sql = "SELECT s.id, c.id FROM stream s JOIN connection c ON c.id = s.conn"
        row = self.row(f"{sql} WHERE connection_id = %s AND name = %s", connection_id, row_name)
        return None if row is None else (row[0], row[1])

    def stream_name(self, stream: int) -> str | None:
        row = self.row("SELECT name FROM stream WHERE id = %s", stream)
        return None if row is None else str(row[0])

    def save_stream(self, connection: int, row_name: str, manifest: StreamManifest) -> None:
        self.changed_catalog()
        self.write(
            "INSERT INTO stream (conn, name, manifest) VALUES (%s, %s, %s)"
            " ON CONFLICT (conn, name) DO UPDATE SET manifest = excluded.manifest",
            connection,
            row_name,
            orjson.dumps(manifest.document).decode(),
        )

    def allot(self, stream: int, manifest: StreamManifest) -> Scopes:
        listed = "SELECT field, ordinal, searchable FROM scope WHERE stream = %s"
        rows = self.rows_of(listed, stream)
        before = {field: searchable for field, _, searchable in rows}
        wanted = dict.fromkeys((*before, *manifest.lexical_fields, *manifest.cell_fields))
        after = {field: field in manifest.lexical_fields for field in wanted}
        if before != after:
            self.changed_catalog()
            self.write_each(
                "INSERT INTO scope (stream, conn, field, searchable)"
                " SELECT id, conn, %s, %s FROM stream WHERE id = %s"
                " ON CONFLICT (stream, field) DO UPDATE SET searchable = excluded.searchable",
                [(field, searchable, stream) for field, searchable in after.items()],
            )
            rows = self.rows_of(listed, stream)
        known = {field: ordinal for field, ordinal, _ in rows}
        return Scopes(
            searchable={name: known[name] for name in manifest.lexical_fields},
            cells={name: known[name] for name in manifest.cell_fields},
        )

    def reindex(
        self,
        stream: int,
        old: tuple[StreamManifest, Scopes],
        new: tuple[StreamManifest, Scopes],
    ) -> None:
        ((conn,),) = self.rows_of("SELECT conn FROM stream WHERE id = %s", stream)
        indexing.reindex(self, (stream, conn), old, new)

    def counts(self) -> list[StreamCount]:
        return [StreamCount(*row) for row in self.rows_of(_COUNTS)]

    def new_seq(self) -> int:
        return self.fresh("record_seq")

    def find(self, piece: Sequence[Arrival]) -> dict[tuple[int, str], Stored]:
        return changes.find(self, piece)

    def read_large(self, place: Place) -> str:
        return indexing.read_value(self, place[0])

    def apply(self, changed: list[Change], sample: Sample) -> None:
        self._written += len(changed)
        changes.apply(self, changed, sample)


def open_writer(url: str, *, lock_seconds: int | None = None) -> Writer:
    """Opens the store in a database for writing; makes its tables if they are new."""
    with connections.explained():
        db = connections.connect(url)
    try:
        with connections.explained():
            if layout(db) > len(MIGRATIONS):
                raise InvalidRequest(
                    "A newer Rung wrote this store. Install that version or later."
                )
            migrate(db, secrets.token_hex(SECRET_BYTES))
        writer = Writer(db, lock_seconds)
        if writer.meta("fold_version") != FOLD_VERSION:
            writer.rebuild()
    except BaseException:
        db.close()
        raise
    return writer
