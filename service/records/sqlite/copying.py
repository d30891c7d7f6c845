"""Reads and writes the rows of a store file for `copying`, without hidden streams."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from evidence.errors import InvalidRequest
from service.records.engine.content import Tables, spread
from service.records.sqlite.ddl import SEQ_MASK
from service.records.sqlite.catalog import first_ordinal

_SHOWN: Final = "JOIN stream s ON s.id = r.stream AND s.name >= char(1)"
_RECORD: Final = f"record r {_SHOWN}"
_USED: Final = f"blob_use u JOIN record r ON r.seq = u.seq {_SHOWN}"
_BLOB: Final = f"b.id IN (SELECT u.blob FROM {_USED})"
_READ: Final = {
    "connection": "SELECT id, connection_id, connector_key, display_name"
    " FROM connection WHERE id NOT IN (SELECT connection FROM stream WHERE name < char(1))"
    " OR id IN (SELECT connection FROM stream WHERE name >= char(1))",
    "stream": "SELECT id, connection, name, manifest FROM stream WHERE name >= char(1)",
    "record": "SELECT r.seq, s.connection, r.stream, r.record_key, r.at, r.deleted, d.emitted_at,"
    f" d.changed, d.data, t.deleted_at, d.big FROM {_RECORD} LEFT JOIN document d ON d.seq = r.seq"
    " LEFT JOIN tombstone t ON t.seq = r.seq ORDER BY r.seq",
    "chunk": f"SELECT s.connection, d.big FROM {_RECORD} JOIN document d ON d.seq = r.seq"
    " WHERE d.big IS NOT NULL ORDER BY r.seq",
    "change": "SELECT c.stream, c.version, c.seq, s.connection, c.fields, c.was_at, c.left_at"
    " FROM change c"
    " JOIN stream s ON s.id = c.stream AND s.name >= char(1) ORDER BY c.version",
    "commit_log": "SELECT version, epoch FROM commit_log ORDER BY version",
    "blob": f"SELECT b.id, b.connection, b.size_bytes, b.sha256 FROM blob b WHERE {_BLOB}"
    " ORDER BY 1",
    "blob_part": "SELECT p.blob, p.no, b.connection, p.data FROM blob b"
    f" JOIN blob_part p ON p.blob = b.id WHERE {_BLOB} ORDER BY 1, 2",
    "blob_use": "SELECT u.blob, u.seq, u.field, s.connection, u.blob_id, u.media_type"
    f" FROM {_USED} ORDER BY 1, 2, 3, 5",
    **{one: f'SELECT * FROM "{one}" ORDER BY 1, 2' for one in ("grant", "package", "member")},
}
#: The target columns of each row.
_WRITE: Final[dict[str, Tables]] = {
    "stream": {"stream (id, connection, name, manifest)": (0, 1, 2, 3)},
    "record": {
        "record (seq, stream, record_key, at, deleted)": (0, 2, 3, 4, 5),
        "document (seq, emitted_at, changed, data, big)": (0, 6, 7, 8, 10),
        "tombstone (seq, deleted_at)": (0, 9),
    },
    "change": {"change (stream, version, seq, fields, was_at, left_at)": (0, 1, 2, 4, 5, 6)},
    "commit_log": {"commit_log (version, epoch)": (0, 1)},
    "blob": {"blob (id, connection, size_bytes, sha256)": range(4)},
    "blob_part": {"blob_part (blob, no, data)": (0, 1, 3)},
    "blob_use": {"blob_use (blob, seq, field, blob_id, media_type)": (0, 1, 2, 4, 5)},
    "grant": {'"grant"': range(8)},
    "package": {"package": range(7)},
    "member": {"member": range(7)},
}


class SqliteContent:
    """See `content.Content`. `settle` requires the counters of a writer, which `take` moves."""

    def __init__(
        self, db: sqlite3.Connection, take: Callable[[str, int], int] | None = None
    ) -> None:
        self._db, self._take = db, take

    def rows(self, part: str) -> Iterator[tuple[Any, ...]]:
        return self._db.execute(_READ[part])

    def chunks(self, value: int, count: int) -> Iterator[str]:
        sql = "SELECT text FROM chunk WHERE id >= ? AND id < ? ORDER BY id"
        return (text for (text,) in self._db.execute(sql, (value, value + count)))

    def version(self) -> int:
        sql = "SELECT coalesce((SELECT value FROM meta WHERE key = 'next_version'), 1) - 1"
        return int(self._db.execute(sql).fetchone()[0])

    def put(self, part: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if part == "connection":
            for row in rows:
                self._add("connection", [(*row, first_ordinal(self._db))])
        elif part == "chunk":
            self._add("chunk", [(value + no, text) for value, no, _, text in rows])
        else:
            if part == "record" and rows[-1][0] > SEQ_MASK:
                raise InvalidRequest(
                    "The record numbers of this database are too large for a store file."
                )
            for into, columns in spread(_WRITE[part], rows):
                self._add(into, columns)

    def _add(self, into: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._db.executemany(f"INSERT INTO {into} VALUES ({marks})", rows)

    def settle(self, version: int) -> None:
        assert self._take is not None
        self._take("next_version", version)
        for counter, column in (("next_seq", "seq) FROM record"), ("next_chunk", "id) FROM chunk")):
            (last,) = self._db.execute(f"SELECT max({column}").fetchone()
            self._take(counter, last or 0)
