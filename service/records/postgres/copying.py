"""Reads and writes the rows of a PostgreSQL store for `copying`."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from evidence.errors import InvalidRequest
from service.records.engine.content import Tables, spread
from service.records.postgres.privacy import OF_OWNER
from service.records.postgres.connections import Connection
from service.records.postgres.ddl import OPEN
from service.records.postgres.transactions import Transactions

_READ: Final = {
    "connection": "SELECT id, connection_id, connector_key, display_name" " FROM connection",
    "stream": "SELECT id, conn, name, manifest FROM stream",
    "record": "SELECT r.seq, r.conn, r.stream, r.record_key, r.at, r.deleted::integer,"
    " d.emitted_at, d.changed, d.data, t.deleted_at, d.big FROM record r"
    " LEFT JOIN document d USING (seq) LEFT JOIN tombstone t USING (seq) ORDER BY r.seq",
    "chunk": "SELECT conn, big FROM document WHERE big IS NOT NULL ORDER BY seq",
    "change": "SELECT stream, version, seq, conn, fields, was_at, left_at FROM change"
    " ORDER BY version",
    "commit_log": "SELECT DISTINCT ON (version) version, epoch FROM commit_log WHERE version > 0"
    " ORDER BY version, generation",
    "blob": "SELECT id, conn, size_bytes, sha256 FROM blob ORDER BY 1",
    "blob_part": "SELECT blob, no, conn, data FROM blob_part ORDER BY 1, 2",
    "blob_use": "SELECT blob, seq, field, conn, blob_id, media_type FROM blob_use"
    " ORDER BY 1, 2, 3, 5",
    **{table: f'SELECT * FROM "{table}" ORDER BY 1, 2' for table in ("grant", "package", "member")},
}
_CHUNKS = "SELECT text FROM chunk WHERE value = %s ORDER BY no"
#: The target columns of each row. `cursor` is derived, for records that have one.
_WRITE: Final[dict[str, Tables]] = {
    "connection": {"connection (id, connection_id, connector_key, display_name)": range(4)},
    "stream": {"stream (id, conn, name, manifest)": range(4)},
    "record": {
        "record (seq, conn, stream, record_key, at, deleted, cursor)": (*range(6), 11),
        "document (seq, emitted_at, changed, data, big, conn)": (0, 6, 7, 8, 10, 1),
        "tombstone (seq, deleted_at, conn)": (0, 9, 1),
    },
    "chunk": {"chunk (value, no, conn, text)": range(4)},
    "change": {"change (stream, version, seq, conn, fields, was_at, left_at)": range(7)},
    "commit_log": {"commit_log (version, epoch, generation)": range(3)},
    "blob": {"blob (id, conn, size_bytes, sha256)": range(4)},
    "blob_part": {"blob_part (blob, no, conn, data)": range(4)},
    "blob_use": {"blob_use (blob, seq, field, conn, blob_id, media_type)": range(6)},
    "grant": {'"grant"': range(8)},
    "package": {"package": range(7)},
    "member": {"member": range(7)},
}
#: Rows fetched at a time.
FETCHED_ROWS: Final = 50
_NUMBERED: Final = ("connection", "stream", "blob", '"grant"', "package")
_NEXT = "SELECT setval(%s::regclass, (SELECT coalesce(max({}), 0) + 1 FROM {}), false)"


class PostgresContent:
    """See `content.Content`. `put` and `settle` require a writer."""

    def __init__(self, db: Connection, writer: Transactions | None = None) -> None:
        self._db, self._writer = db, writer
        if writer is not None:  # prevents others from filling it meanwhile
            self._db.execute('LOCK TABLE connection, "grant", package IN SHARE ROW EXCLUSIVE MODE')
        elif not self._db.execute(OF_OWNER).fetchone() == (True,):
            raise InvalidRequest(
                "This database role cannot read every record. Use the role that runs imports."
            )
        self._db.execute(OPEN)

    def rows(self, part: str) -> Iterator[tuple[Any, ...]]:
        return self._iterate(part, _READ[part])

    def chunks(self, value: int, count: int) -> Iterator[str]:
        return (text.decode() for (text,) in self._iterate("chunks", _CHUNKS, value))

    def _iterate(self, name: str, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        with self._db.cursor(f"copying_{name}") as cursor:
            cursor.itersize = FETCHED_ROWS
            yield from cursor.execute(sql.encode(), values)

    def version(self) -> int:
        ((version,),) = self._db.execute("SELECT version FROM counter")
        return int(version)

    def put(self, part: str, rows: Sequence[tuple[Any, ...]]) -> None:
        assert self._writer is not None
        if part == "chunk":
            rows = [(*key, text.encode()) for *key, text in rows]
        elif part == "record":
            rows = [(*row, b"") for row in rows]
        elif part == "commit_log":
            rows = [(*row, 0) for row in rows]
        for into, columns in spread(_WRITE[part], rows):
            self._writer.copy(into, columns)

    def settle(self, version: int) -> None:
        assert self._writer is not None
        self._writer.write("UPDATE counter SET version = %s", version)
        for table in _NUMBERED:
            ((name,),) = self._db.execute("SELECT pg_get_serial_sequence(%s, 'id')", (table,))
            self._db.execute(_NEXT.format("id", table).encode(), (name,))
        for name, column, table in (
            ("record_seq", "seq", "record"),
            ("value_seq", "value", "chunk"),
        ):
            self._db.execute(_NEXT.format(column, table).encode(), (name,))
        self._db.execute("ANALYZE")
