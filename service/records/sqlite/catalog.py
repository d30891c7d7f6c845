"""Connections and streams as rows."""

from service.records.manifest import StreamManifest
from service.records.scopes import Scopes
from service.records.sqlite import scopes
from service.records.sqlite.scopes import first_ordinal
from service.records.sqlite.attachments import Attachments

_KNOWN = "SELECT 1 FROM connection WHERE connection_id = ?"
_ADD = "INSERT INTO connection (connection_id, connector_key, first_ordinal) VALUES (?, ?, ?)"
_DESCRIBE = """
UPDATE connection SET connector_key = coalesce(?, connector_key),
  display_name = coalesce(?, display_name) WHERE connection_id = ? RETURNING id
"""


class Catalog(Attachments):
    """The verbs of a writer for connections and streams; see `writing.Writing`."""

    owner = "connection"
    shown = "s.name >= char(1)"  # hidden streams have names before all others

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
