"""Connections and streams as rows."""

from typing import Final

from service.records.manifest import StreamManifest
from service.records.scopes import Scopes
from service.records.sqlite import scopes
from service.records.sqlite.scopes import first_ordinal
from service.records.sqlite.attachments import Attachments
from service.records.writer import Statements

_KNOWN = "SELECT 1 FROM connection WHERE connection_id = ?"
_ADD = "INSERT INTO connection (connection_id, connector_key, first_ordinal) VALUES (?, ?, ?)"
_DESCRIBE = """
UPDATE connection SET connector_key = coalesce(?, connector_key),
  display_name = coalesce(?, display_name) WHERE connection_id = ? RETURNING id
"""
#: Hidden streams have names before all others.
STATEMENTS: Final = Statements(
    meta="SELECT value FROM meta WHERE key = ?",
    connection_ids="SELECT connection_id FROM connection c WHERE EXISTS"
    " (SELECT 1 FROM stream s WHERE s.connection = c.id AND s.name >= char(1)) ORDER BY 1",
    manifest_rows="SELECT name, manifest FROM stream s JOIN connection c ON c.id = s.connection"
    " WHERE connection_id = ? ORDER BY name >= char(1) DESC, name",
    find_stream="SELECT s.id, c.id FROM stream s JOIN connection c ON c.id = s.connection"
    " WHERE connection_id = ? AND name = ?",
    stream_name="SELECT name FROM stream WHERE id = ?",
    save_stream="INSERT INTO stream (connection, name, manifest) VALUES (?, ?, ?)"
    " ON CONFLICT (connection, name) DO UPDATE SET manifest = excluded.manifest",
    counts="SELECT connection_id, s.name, count(*) FILTER (WHERE deleted = 0),"
    " count(*) FILTER (WHERE deleted = 1) FROM stream s JOIN connection c ON c.id = s.connection"
    " LEFT JOIN record r ON r.stream = s.id WHERE s.name >= char(1)"
    " GROUP BY s.id ORDER BY connection_id, s.name",
    languages="SELECT languages FROM connection WHERE id = ?",
    save_languages="UPDATE connection SET languages = ? WHERE id = ?",
    add_records="UPDATE stream SET records = records + ? WHERE id = ?",
    set_records="UPDATE stream SET records = ? WHERE id = ?",
    reorder="UPDATE record SET at = ?, cursor = ?, thread = ?, place = ? WHERE seq = ?",
)


class Catalog(Attachments):
    """The verbs of a writer for connections and streams; see `writing.Writing`."""

    statements = STATEMENTS

    def save_connection(
        self, connection_id: str, connector_key: str | None, label: str | None
    ) -> int:
        if self.row(_KNOWN, connection_id) is None:
            key = connector_key or connection_id
            self.run(_ADD, connection_id, key, first_ordinal(self.db))
        ((id,),) = self.run(_DESCRIBE, connector_key, label, connection_id)
        return int(id)

    def allot(self, stream: int, manifest: StreamManifest) -> Scopes:
        return scopes.allot(self.db, stream, manifest)
