"""Opening a store in a database for writing, and its verbs; see `writing.Writing`."""

import secrets
from collections.abc import Callable

from evidence.errors import InvalidRequest
from evidence.fold import FOLD_VERSION
from service.records.manifest import StreamManifest
from service.records.postgres import connections
from service.records.postgres.changes import Changes
from service.records.postgres.ddl import INDEXES, MIGRATIONS, layout, migrate
from service.records.scopes import Scopes
from service.records.sql.conditions import Statements
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


class Writer(Changes):
    """The store in a database, open for writing. See `writing.Writing`."""

    engine = "postgres"
    statements = Statements("conn", "s.name <> ''")  # none is hidden

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
        listed = "SELECT field, ordinal, searchable FROM scope WHERE stream = %s"
        rows = self.rows_of(listed, stream)
        before = {field: searchable for field, _, searchable in rows}
        wanted = dict.fromkeys((*before, *manifest.lexical_fields, *manifest.cell_fields))
        after = {field: field in manifest.lexical_fields for field in wanted}
        if before != after:
            self.changed_catalog()
            self.run_each(
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


def open_writer(url: str, *, lock_seconds: int | None = None) -> Writer:
    """Opens the store in a database for writing; creates its tables if necessary."""
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
