"""Opening a store in a database for writing, and its verbs; see `writing.Writing`."""

import secrets
from collections.abc import Callable
from typing import Final

from evidence.errors import InvalidRequest
from evidence.fold import FOLD_VERSION
from service.records.manifest import StreamManifest
from service.records.postgres import connections
from service.records.postgres.changes import Changes
from service.records.postgres.ddl import INDEXES, MIGRATIONS, layout, migrate
from service.records.scopes import Scopes
from service.records.writer import Statements
from service.records.writing import SECRET_BYTES

#: From so many records on, what the planner knows of the tables is brought up to date at once.
ANALYZE_RECORDS = 1_000

_CONNECT = """
INSERT INTO connection AS c (connection_id, connector_key, display_name)
VALUES (%s, coalesce(%s::text, %s), %s) ON CONFLICT (connection_id) DO UPDATE SET
  connector_key = coalesce(%s::text, c.connector_key),
  display_name = coalesce(excluded.display_name, c.display_name)
RETURNING id
"""
_STATEMENTS: Final = Statements(
    meta="SELECT value FROM meta WHERE key = ?",
    connection_ids="SELECT DISTINCT connection_id FROM connection c JOIN stream s ON s.conn = c.id"
    " ORDER BY 1",
    manifest_rows="SELECT name, manifest FROM stream s JOIN connection c ON c.id = s.conn"
    " WHERE connection_id = ? ORDER BY name",
    find_stream="SELECT s.id, c.id FROM stream s JOIN connection c ON c.id = s.conn"
    " WHERE connection_id = ? AND name = ?",
    stream_name="SELECT name FROM stream WHERE id = ?",
    save_stream="INSERT INTO stream (conn, name, manifest) VALUES (?, ?, ?)"
    " ON CONFLICT (conn, name) DO UPDATE SET manifest = excluded.manifest",
    counts="SELECT c.connection_id, s.name, count(r.seq) FILTER (WHERE NOT r.deleted),"
    " count(r.seq) FILTER (WHERE r.deleted) FROM stream s JOIN connection c ON c.id = s.conn"
    " LEFT JOIN record r ON r.stream = s.id GROUP BY c.connection_id, s.name ORDER BY 1, 2",
    languages="SELECT languages FROM connection WHERE id = ?",
    save_languages="UPDATE connection SET languages = ? WHERE id = ?",
    add_records="UPDATE stream SET records = records + ? WHERE id = ?",
    set_records="UPDATE stream SET records = ? WHERE id = ?",
    reorder="UPDATE record SET at = ?, cursor = ?, thread = ?, place = ? WHERE seq = ?",
)


class Writer(Changes):
    """The store in a database, open for writing. See `writing.Writing`."""

    engine = "postgres"
    statements = _STATEMENTS

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
