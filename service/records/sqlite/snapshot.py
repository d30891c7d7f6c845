"""The verbs of a snapshot over SQLite; see `engine.Snapshot` for what each returns."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Any

import orjson

from service.records.engine import (
    Big,
    BlobRow,
    Change,
    Generation,
    Order,
    Position,
    Row,
    Selection,
    Stored,
    StreamRow,
    Value,
)
from service.records.manifest import StreamManifest, parse
from service.records.sqlite.conditions import of_limit, of_records, of_values
from service.records.sqlite.search import SearchVerbs

_STREAM = """
SELECT s.id, s.manifest, c.connector_key, c.display_name, c.languages,
  (SELECT json_group_array(json_array(o.ordinal, o.field, o.searchable))
     FROM scope o WHERE o.stream = s.id)
FROM stream s JOIN connection c ON c.id = s.connection
WHERE c.connection_id = ? AND s.name = ?
"""
_NAMES = """
SELECT c.connection_id, s.name FROM stream s JOIN connection c ON c.id = s.connection
WHERE s.name >= char(1) ORDER BY 1, 2
"""
_LOAD = """
SELECT d.seq, r.stream, r.record_key, d.emitted_at, d.data, d.big, d.changed
FROM document d JOIN record r ON r.seq = d.seq WHERE d.seq IN (SELECT value FROM json_each(?))
"""
# CROSS JOIN: the list is the outer loop, so rows come in its order and one at a time.
_EACH = """
SELECT d.seq, r.stream, r.record_key, d.emitted_at, d.data, d.big, d.changed
FROM json_each(?) e CROSS JOIN document d ON d.seq = e.value CROSS JOIN record r ON r.seq = d.seq
"""
_LAST_CHANGE = """
SELECT coalesce(d.emitted_at, t.deleted_at)
FROM change c LEFT JOIN document d USING (seq) LEFT JOIN tombstone t USING (seq)
WHERE c.stream = ? ORDER BY c.version DESC LIMIT 1
"""
_BLOBS = """
SELECT DISTINCT b.id, b.media_type, b.size_bytes, b.sha256, u.field FROM blob b
JOIN blob_use u ON u.blob = b.id JOIN record r ON r.seq = u.seq
"""


class SqliteSnapshot(SearchVerbs):
    """One consistent view of a store file. See `engine.Snapshot`."""

    engine = "sqlite"

    def __init__(self, db: sqlite3.Connection, generation: tuple[int, int]) -> None:
        self.db = db
        self._generation = generation
        self._blocks = {}

    def generation(self, expected: Generation | None = None) -> Generation:
        return self._generation

    def confine(self, connection_ids: Iterable[str] | None) -> None:
        """Nothing: who reads the file can read all of it."""

    def ahead(self, calls: Iterable[Callable[[], object]], turns: int = 1) -> None:
        """Nothing: what is here need not be fetched."""

    def fetch(self, places: Sequence[tuple[int, str, int]]) -> None:
        """Nothing, either."""

    def meta(self, key: str) -> Any:
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        return self.db.execute(sql, values).fetchall()

    def stream(self, connection_id: str, name: str) -> StreamRow | None:
        row = self.db.execute(_STREAM, (connection_id, name)).fetchone()
        if row is None:
            return None
        id, text, connector_key, display_name, languages, scopes = row
        listed = orjson.loads(scopes)
        return StreamRow(
            id,
            _manifest(text),
            connector_key,
            display_name,
            {field: ordinal for ordinal, field, _ in listed},
            frozenset(field for _, field, searchable in listed if searchable),
            tuple(orjson.loads(languages)),
        )

    def names(self) -> list[tuple[str, str]]:
        return self.db.execute(_NAMES).fetchall()

    # Records

    def find(self, selection: Selection, record_key: str) -> int | None:
        found = of_records(self.db, selection)
        found.add("r.record_key = ?", record_key)
        sql = f"SELECT r.seq FROM record r WHERE {found.sql()}"
        row = self.db.execute(sql, found.values).fetchone()
        return None if row is None else int(row[0])

    def page(
        self, selections: Sequence[Selection], order: Order, after: Position | None, limit: int
    ) -> list[Row]:
        columns = ("r.cursor" if order.by_cursor else "0", "r.record_key")
        keyset = columns if order.by_cursor else columns[1:]
        direction, beyond = ("DESC", "<") if order.descending else ("ASC", ">")
        sort = ", ".join(f"{column} {direction}" for column in keyset)
        branches, values = [], list[Any]()
        for number, selection in enumerate(selections):
            found = of_records(self.db, selection)
            if after is not None:
                edge = [after.cursor, after.record_key] if order.by_cursor else [after.record_key]
                past = beyond + ("=" if number > after.selection else "")
                found.add(f"({', '.join(keyset)}) {past} ({', '.join('?' * len(edge))})", *edge)
            branches.append(
                f"SELECT * FROM (SELECT r.seq, {', '.join(columns)}, {number} FROM record r "
                f"WHERE {found.sql()} ORDER BY {sort} LIMIT {limit})"
            )
            values += found.values
        merged = " UNION ALL ".join(branches)
        rows = self.db.execute(
            f"{merged} ORDER BY 2 {direction}, 3 {direction}, 4 ASC LIMIT {limit}", values
        )
        return [Row(seq, Position(*position)) for seq, *position in rows]

    def count(self, selection: Selection) -> int:
        if len({test.ordinal for test in selection.tests}) == 1:
            return int(self._cells(selection, selection.tests[0].ordinal, "count(*)").fetchone()[0])
        return self.span(selection)[0]

    def span(self, selection: Selection) -> tuple[int, int | None, int | None]:
        found = of_records(self.db, selection)
        sql = f"SELECT count(*), min(r.at), max(r.at) FROM record r WHERE {found.sql()}"
        number, first, last = self.db.execute(sql, found.values).fetchone()
        return number, first, last

    def load(self, seqs: Iterable[int]) -> dict[int, Stored]:
        rows = self.db.execute(_LOAD, (orjson.dumps(list(seqs)).decode(),))
        return {row[0]: _stored(row) for row in rows}

    def each(self, seqs: Iterable[int]) -> Iterator[Stored]:
        with closing(self.db.execute(_EACH, (orjson.dumps(list(seqs)).decode(),))) as rows:
            yield from map(_stored, rows)

    def related(
        self, selection: Selection, ordinal: int, keys: Sequence[Value], order: Order, limit: int
    ) -> list[int]:
        found = of_records(self.db, selection)
        marks = ", ".join("?" * len(keys))
        found.add(
            f"r.seq IN (SELECT c.seq FROM cell c WHERE c.ordinal = ? AND c.value IN ({marks}))",
            ordinal,
            *keys,
        )
        direction = "DESC" if order.descending else "ASC"
        sort = f"r.cursor {direction}, r.record_key" if order.by_cursor else "r.record_key"
        rows = self.db.execute(
            f"SELECT r.seq FROM record r WHERE {found.sql()} ORDER BY {sort} LIMIT ?",
            (*found.values, limit),
        )
        return [seq for (seq,) in rows]

    # Large values

    def chunks(self, big: Big, first: int = 0, last: int | None = None) -> Iterator[str]:
        stop = big.chunks - 1 if last is None else last
        rows = self.db.execute(
            "SELECT text FROM chunk WHERE id BETWEEN ? AND ? ORDER BY id",
            (big.first + first, big.first + stop),
        )
        return (text for (text,) in rows)

    # Values of fields

    def values(self, selection: Selection, ordinal: int) -> Iterator[Value]:
        return (value for (value,) in self._cells(selection, ordinal, "DISTINCT v.value"))

    def total(self, selection: Selection, ordinal: int) -> int | float:
        try:
            return self._cells(selection, ordinal, "sum(v.value)").fetchone()[0] or 0
        except sqlite3.OperationalError as error:
            if "integer overflow" not in str(error):
                raise
            return float(self._cells(selection, ordinal, "total(v.value)").fetchone()[0])

    def extreme(
        self, selection: Selection, ordinal: int, *, greatest: bool
    ) -> tuple[Value, int] | None:
        order = "DESC" if greatest else "ASC"
        tail = f"ORDER BY v.value {order}, v.seq {order} LIMIT 1"
        row = self._cells(selection, ordinal, "v.value, v.seq", tail).fetchone()
        return None if row is None else (row[0], row[1])

    def groups(self, selection: Selection, ordinal: int) -> Iterator[tuple[Value, int]]:
        return iter(self._cells(selection, ordinal, "v.value, count(*)", "GROUP BY v.value"))

    def slots(
        self, selection: Selection, ordinal: int, origin: int, width: int
    ) -> Iterator[tuple[int, int]]:
        zero = origin // width * width  # SQLite divides towards 0: nothing lies below
        slot = f"(v.value - ({zero})) / {width}"
        columns = f"{slot} * {width} + ({zero}), count(*)"
        return iter(self._cells(selection, ordinal, columns, f"GROUP BY {slot}"))

    def next_value(self, ordinal: int, least: int) -> int | None:
        row = self.db.execute(
            "SELECT min(value) FROM cell WHERE ordinal = ? AND value >= ?", (ordinal, least)
        ).fetchone()
        return None if row is None else row[0]

    def _cells(
        self, selection: Selection, ordinal: int, columns: str, tail: str = ""
    ) -> sqlite3.Cursor:
        """Columns of `cell v` over the values a field has in the selected records."""
        direct = of_values(selection, ordinal)
        if direct is not None:
            sql = f"SELECT {columns} FROM cell v WHERE {direct.sql()} {tail}"
            return self.db.execute(sql, direct.values)
        found = of_records(self.db, selection)
        return self.db.execute(
            f"SELECT {columns} FROM record r JOIN cell v ON v.seq = r.seq AND v.ordinal = ? "
            f"WHERE {found.sql()} {tail}",
            (ordinal, *found.values),
        )

    # Changes

    def changes(self, stream: int, after: int) -> Iterator[Change]:
        rows = self.db.execute(
            "SELECT version, seq, fields FROM change WHERE stream = ? AND version > ? "
            "ORDER BY version",
            (stream, after),
        )
        return map(_change, rows)

    def later_changes(self, seq: int, after: int) -> Iterator[Change]:
        rows = self.db.execute(
            "SELECT version, seq, fields FROM change WHERE seq = ? AND version > ?", (seq, after)
        )
        return map(_change, rows)

    def last_change(self, stream: int) -> str | None:
        return next((at for (at,) in self.db.execute(_LAST_CHANGE, (stream,))), None)

    def deleted(self, seq: int) -> tuple[str, str]:
        row = self.db.execute(
            "SELECT r.record_key, t.deleted_at FROM record r JOIN tombstone t USING (seq) "
            "WHERE r.seq = ?",
            (seq,),
        ).fetchone()
        return row[0], row[1]

    def shows(self, selection: Selection, seq: int) -> bool:
        found = of_limit(selection.limit)
        found.add("r.seq = ?", seq)
        sql = f"SELECT 1 FROM record r WHERE {found.sql()}"
        return self.db.execute(sql, found.values).fetchone() is not None

    # Blobs

    def blobs(self, selection: Selection, blob_id: str) -> list[BlobRow]:
        found = of_records(self.db, selection)
        found.add("b.blob_id = ?", blob_id)
        return [
            BlobRow(*row) for row in self.db.execute(f"{_BLOBS} WHERE {found.sql()}", found.values)
        ]

    def blob_of(self, seq: int, field: str, blob_id: str) -> BlobRow | None:
        row = self.db.execute(
            f"{_BLOBS} WHERE u.seq = ? AND u.field = ? AND b.blob_id = ?", (seq, field, blob_id)
        ).fetchone()
        return None if row is None else BlobRow(*row)

    def blob_content(self, blob: BlobRow) -> bytes:
        rows = self.db.execute("SELECT data FROM blob_part WHERE blob = ? ORDER BY no", (blob.key,))
        return b"".join(data for (data,) in rows)


@lru_cache(maxsize=1024)
def _manifest(text: str) -> StreamManifest:
    return parse({"streams": [orjson.loads(text)]})[0]


def _stored(row: tuple[Any, ...]) -> Stored:
    seq, stream, record_key, emitted_at, data, big, changed = row
    places = {field: Big(*place) for field, place in orjson.loads(big).items()} if big else {}
    times = orjson.loads(changed) if changed else {}
    return Stored(seq, stream, record_key, emitted_at, orjson.loads(data), places, times, len(data))


def _change(row: tuple[int, int, str | None]) -> Change:
    version, seq, fields = row
    return Change(version, seq, None if fields is None else frozenset(orjson.loads(fields)))
