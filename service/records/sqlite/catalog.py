"""Connections and streams as rows."""

import orjson

from service.records.languages import Sample, merged
from service.records.manifest import StreamManifest
from service.records.scopes import Scopes
from service.records.sqlite import scopes
from service.records.sqlite.scopes import first_ordinal
from service.records.sqlite.transactions import Transactions
from service.records.writing import StreamCount

_COUNTS = """
SELECT connection_id, stream.name AS stream,
  count(*) FILTER (WHERE deleted = 0) AS records,
  count(*) FILTER (WHERE deleted = 1) AS deleted
FROM stream JOIN connection ON connection.id = stream.connection
LEFT JOIN record ON record.stream = stream.id
WHERE stream.name >= char(1)
GROUP BY stream.id ORDER BY connection_id, stream.name
"""


class Catalog(Transactions):
    """The verbs of a writer for connections and streams; see `writing.Writing`."""

    def save_connection(
        self, connection_id: str, connector_key: str | None, label: str | None
    ) -> int:
        known = "SELECT id FROM connection WHERE connection_id = ?"
        if self.db.execute(known, (connection_id,)).fetchone() is None:
            self.db.execute(
                "INSERT INTO connection (connection_id, connector_key, first_ordinal)"
                " VALUES (?, ?, ?)",
                (connection_id, connector_key or connection_id, first_ordinal(self.db)),
            )
        (id,) = self.db.execute(
            "UPDATE connection SET connector_key = coalesce(?, connector_key),"
            " display_name = coalesce(?, display_name) WHERE connection_id = ? RETURNING id",
            (connector_key, label, connection_id),
        ).fetchone()
        return int(id)

    def connection_ids(self) -> list[str]:
        rows = self.db.execute(
            "SELECT connection_id FROM connection c WHERE EXISTS"
            " (SELECT 1 FROM stream s WHERE s.connection = c.id AND s.name >= char(1)) ORDER BY 1"
        )
        return [row[0] for row in rows]

    def manifest_rows(self, connection_id: str) -> list[tuple[str, str]]:
        return self.db.execute(
            "SELECT name, manifest FROM stream JOIN connection ON connection.id = stream.connection"
            " WHERE connection_id = ? ORDER BY name >= char(1) DESC, name",
            (connection_id,),
        ).fetchall()

    def find_stream(self, connection_id: str, row_name: str) -> tuple[int, int] | None:
        found: tuple[int, int] | None = self.db.execute(
            "SELECT stream.id, connection.id FROM stream"
            " JOIN connection ON connection.id = stream.connection"
            " WHERE connection_id = ? AND name = ?",
            (connection_id, row_name),
        ).fetchone()
        return found

    def stream_name(self, stream: int) -> str | None:
        row = self.db.execute("SELECT name FROM stream WHERE id = ?", (stream,)).fetchone()
        return None if row is None else str(row[0])

    def save_stream(self, connection: int, row_name: str, manifest: StreamManifest) -> None:
        self.db.execute(
            "INSERT INTO stream (connection, name, manifest) VALUES (?, ?, ?)"
            " ON CONFLICT (connection, name) DO UPDATE SET manifest = excluded.manifest",
            (connection, row_name, orjson.dumps(manifest.document).decode()),
        )

    def counts(self) -> list[StreamCount]:
        from sqlite_utils import Database  # takes longer to load than most commands run

        rows = Database(self.db, use_counts_table=False).query(_COUNTS)
        return [StreamCount(**row) for row in rows]

    def allot(self, stream: int, manifest: StreamManifest) -> Scopes:
        return scopes.allot(self.db, stream, manifest)

    def note_languages(self, sample: Sample) -> None:
        """Adds the languages of the texts of a sample to those of their connections."""
        for connection, found in sample.found():
            sql = "SELECT languages FROM connection WHERE id = ?"
            (known,) = self.db.execute(sql, (connection,)).fetchone()
            if text := merged(known, found):
                self.db.execute(
                    "UPDATE connection SET languages = ? WHERE id = ?", (text, connection)
                )
