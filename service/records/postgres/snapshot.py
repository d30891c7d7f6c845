"""The verbs of a snapshot over PostgreSQL; see `engine.Snapshot` for what each returns."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import orjson

from service.records.engine import (
    Big,
    BlobRow,
    Change,
    Order,
    Position,
    Row,
    Selection,
    Stored,
    StreamRow,
    Value,
)
from service.records.postgres.conditions import of_limit, of_records, of_values
from service.records.postgres.keys import kept_value, key_of, value_of
from service.records.postgres.search import SearchVerbs

#: Documents, and chunks of a large value, that are read at a time.
DOCUMENTS: Final = 10
CHUNKS: Final = 64

_NAMES = """
SELECT c.connection_id, s.name FROM stream s JOIN connection c ON c.id = s.conn
ORDER BY c.connection_id COLLATE "C", s.name COLLATE "C"
"""
_RECORDS = """
SELECT d.seq, r.stream, r.record_key, d.emitted_at, d.data, d.big, d.changed
FROM document d JOIN record r ON r.seq = d.seq
"""
_LOAD = f"{_RECORDS} WHERE d.seq = ANY(%s)"
_CHUNKS = "SELECT text FROM chunk WHERE value = %s AND no BETWEEN %s AND %s ORDER BY no"
_FETCH = """
SELECT c.value, c.no, c.text FROM unnest(%s::bigint[], %s::text[], %s::integer[]) p(seq, field, no)
JOIN document d ON d.seq = p.seq
JOIN chunk c ON c.value = (d.big::jsonb -> p.field ->> 0)::bigint AND c.no = p.no
"""
_LAST_CHANGE = """
SELECT coalesce(d.emitted_at, t.deleted_at)
FROM change c LEFT JOIN document d USING (seq) LEFT JOIN tombstone t USING (seq)
WHERE c.stream = %s ORDER BY c.version DESC LIMIT 1
"""
_BLOBS = """
SELECT DISTINCT b.id, b.media_type, b.size_bytes, b.sha256, u.field FROM blob b
JOIN blob_use u ON u.blob = b.id JOIN record r ON r.seq = u.seq
"""


class PostgresSnapshot(SearchVerbs):
    """One consistent view of a store. See `engine.Snapshot`."""

    engine = "postgres"

    def meta(self, key: str) -> Any:
        row = self.row("SELECT value FROM meta WHERE key = %s", key)
        return None if row is None else row[0]

    def stream(self, connection_id: str, name: str) -> StreamRow | None:
        if self._named is not None and connection_id not in self._named:
            return None
        return self.catalog.stream(self.rows_of, connection_id, name)

    def names(self) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self.rows_of(_NAMES)]

    # Records

    def find(self, selection: Selection, record_key: str) -> int | None:
        found = of_records(selection)
        found.add("r.record_key = %s", record_key)
        row = self.row(f"{_RECORDS} WHERE {found.sql()}", *found.values)
        if row is None:
            return None
        self.know([row], _LOAD, [row[0]])  # it will be read
        return int(row[0])

    def page(
        self, selections: Sequence[Selection], order: Order, after: Position | None, limit: int
    ) -> list[Row]:
        columns = ("r.cursor" if order.by_cursor else "''::bytea", "r.record_key")
        keyset = columns if order.by_cursor else columns[1:]
        direction, beyond = ("DESC", "<") if order.descending else ("ASC", ">")
        sort = ", ".join(f"{column} {direction}" for column in keyset)
        branches, values = [], list[Any]()
        for number, selection in enumerate(selections):
            found = of_records(selection)
            if after is not None:
                key = [after.record_key]
                edge = [key_of(after.cursor), *key] if order.by_cursor else key
                past = beyond + ("=" if number > after.selection else "")
                found.add(f"({', '.join(keyset)}) {past} ({', '.join(['%s'] * len(edge))})", *edge)
            branches.append(
                f"(SELECT r.seq, {', '.join(columns)}, {number} FROM record r "
                f"WHERE {found.sql()} ORDER BY {sort} LIMIT {limit})"
            )
            values += found.values
        merged = " UNION ALL ".join(branches)
        rows = self.rows_of(
            f"SELECT * FROM ({merged}) p ORDER BY 2 {direction}, 3 {direction}, 4 LIMIT {limit}",
            *values,
        )
        return [
            Row(seq, Position(value_of(cursor) if cursor else 0, key, number))
            for seq, cursor, key, number in rows
        ]

    def count(self, selection: Selection) -> int:
        if len({test.ordinal for test in selection.tests}) == 1:
            ordinal = selection.tests[0].ordinal
            return int(self._cells(selection, ordinal, "count(*)")[0][0])
        return self.span(selection)[0]

    def span(self, selection: Selection) -> tuple[int, int | None, int | None]:
        found = of_records(selection)
        sql = f"SELECT count(*), min(r.at), max(r.at) FROM record r WHERE {found.sql()}"
        ((number, first, last),) = self.rows_of(sql, *found.values)
        return number, first, last

    def load(self, seqs: Iterable[int]) -> dict[int, Stored]:
        return {row[0]: _stored(row) for row in self.rows_of(_LOAD, list(seqs))}

    def each(self, seqs: Iterable[int]) -> Iterator[Stored]:
        listed = list(seqs)
        for start in range(0, len(listed), DOCUMENTS):
            piece = listed[start : start + DOCUMENTS]
            found = self.load(piece)
            yield from (found.pop(seq) for seq in piece if seq in found)

    def related(
        self, selection: Selection, ordinal: int, keys: Sequence[Value], order: Order, limit: int
    ) -> list[int]:
        found = of_records(selection)
        found.add(
            "r.seq IN (SELECT c.seq FROM cell c WHERE c.ordinal = %s AND c.key = ANY(%s))",
            ordinal,
            [key_of(key) for key in keys],
        )
        direction = "DESC" if order.descending else "ASC"
        sort = f"r.cursor {direction}, r.record_key" if order.by_cursor else "r.record_key"
        sql = f"SELECT r.seq FROM record r WHERE {found.sql()} ORDER BY {sort} LIMIT %s"
        return [seq for (seq,) in self.rows_of(sql, *found.values, limit)]

    # Large values

    def chunks(self, big: Big, first: int = 0, last: int | None = None) -> Iterator[str]:
        stop = big.chunks if last is None else last + 1
        for start in range(first, stop, CHUNKS):
            numbers = range(start, min(start + CHUNKS, stop))
            known = [self._chunks.get((big.first, no)) for no in numbers]
            if None in known:
                rows = self.rows_of(_CHUNKS, big.first, start, numbers[-1])
                known = [text for (text,) in rows]
            yield from (text.decode() for text in known if text is not None)

    def fetch(self, places: Sequence[tuple[int, str, int]]) -> None:
        found = self.rows_of(_FETCH, *map(list, zip(*places)))
        self._chunks |= {(value, no): text for value, no, text in found}

    @cached_property
    def _chunks(self) -> dict[tuple[int, int], bytes]:
        """What `fetch` has found, by value and number."""
        return {}

    # Values of fields

    def values(self, selection: Selection, ordinal: int) -> Iterator[Value]:
        return (value_of(key) for (key,) in self._cells(selection, ordinal, "DISTINCT v.key"))

    def total(self, selection: Selection, ordinal: int) -> int | float:
        columns = "coalesce(sum(v.number), 0), coalesce(bool_or(scale(v.number) > 0), false)"
        ((total, fractions),) = self._cells(selection, ordinal, columns)
        return float(total) if fractions else int(total)

    def extreme(
        self, selection: Selection, ordinal: int, *, greatest: bool
    ) -> tuple[Value, int] | None:
        order = "DESC" if greatest else "ASC"
        tail = f"ORDER BY v.key {order}, v.seq {order} LIMIT 1"
        rows = self._cells(selection, ordinal, "v.key, v.number, v.seq", tail)
        return (kept_value(*rows[0][:2]), rows[0][2]) if rows else None

    def groups(self, selection: Selection, ordinal: int) -> Iterator[tuple[Value, int]]:
        columns = "v.key, min(v.number), count(*)"
        rows = self._cells(selection, ordinal, columns, "GROUP BY v.key")
        return ((kept_value(key, number), count) for key, number, count in rows)

    def slots(
        self, selection: Selection, ordinal: int, origin: int, width: int
    ) -> Iterator[tuple[int, int]]:
        zero = origin // width * width  # PostgreSQL divides towards 0: nothing lies below
        slot = f"(v.number::bigint - ({zero})) / {width}"
        columns = f"{slot} * {width} + ({zero}), count(*)"
        return iter(self._cells(selection, ordinal, columns, f"GROUP BY {slot}"))

    def next_value(self, ordinal: int, least: int) -> int | None:
        row = self.row(
            "SELECT number::bigint FROM cell WHERE ordinal = %s AND key >= %s ORDER BY key LIMIT 1",
            ordinal,
            key_of(least),
        )
        return None if row is None else row[0]

    def _cells(self, selection: Selection, ordinal: int, columns: str, tail: str = "") -> list[Any]:
        """Columns of `cell v` over the values a field has in the selected records."""
        direct = of_values(selection, ordinal)
        if direct is not None:
            sql = f"SELECT {columns} FROM cell v WHERE {direct.sql()} {tail}"
            return self.rows_of(sql, *direct.values)
        found = of_records(selection)
        return self.rows_of(
            f"SELECT {columns} FROM record r JOIN cell v ON v.seq = r.seq AND v.ordinal = %s "
            f"WHERE {found.sql()} {tail}",
            ordinal,
            *found.values,
        )

    # Changes

    def changes(self, stream: int, after: int) -> Iterator[Change]:
        sql = "SELECT version, seq, fields FROM change WHERE stream = %s AND version > %s"
        return map(_change, self.each_row(f"{sql} ORDER BY version LIMIT %s", stream, after))

    def later_changes(self, seq: int, after: int) -> Iterator[Change]:
        sql = "SELECT version, seq, fields FROM change WHERE seq = %s AND version > %s"
        return map(_change, self.rows_of(sql, seq, after))

    def last_change(self, stream: int) -> str | None:
        return next((at for (at,) in self.rows_of(_LAST_CHANGE, stream)), None)

    def deleted(self, seq: int) -> tuple[str, str]:
        ((key, at),) = self.rows_of(
            "SELECT r.record_key, t.deleted_at FROM record r JOIN tombstone t USING (seq) "
            "WHERE r.seq = %s",
            seq,
        )
        return key, at

    def shows(self, selection: Selection, seq: int) -> bool:
        found = of_limit(selection.limit)
        found.add("r.seq = %s", seq)
        return self.row(f"SELECT 1 FROM record r WHERE {found.sql()}", *found.values) is not None

    # Blobs

    def blobs(self, selection: Selection, blob_id: str) -> list[BlobRow]:
        found = of_records(selection)
        found.add("b.blob_id = %s", blob_id)
        rows = self.rows_of(f"{_BLOBS} WHERE {found.sql()}", *found.values)
        return [BlobRow(*row) for row in rows]

    def blob_of(self, seq: int, field: str, blob_id: str) -> BlobRow | None:
        where = "WHERE u.seq = %s AND u.field = %s AND b.blob_id = %s"
        row = self.row(f"{_BLOBS} {where}", seq, field, blob_id)
        return None if row is None else BlobRow(*row)

    def blob_content(self, blob: BlobRow) -> bytes:
        rows = self.rows_of("SELECT data FROM blob_part WHERE blob = %s ORDER BY no", blob.key)
        return b"".join(data for (data,) in rows)

    def blob_part(self, blob: BlobRow, number: int) -> bytes | None:
        """A piece of a blob; None if the blob is another one by now."""
        row = self.row(
            "SELECT data FROM blob_part p JOIN blob b ON b.id = p.blob "
            "WHERE p.blob = %s AND b.sha256 = %s AND p.no = %s",
            blob.key,
            blob.sha256,
            number,
        )
        return None if row is None else row[0]


def _stored(row: tuple[Any, ...]) -> Stored:
    seq, stream, record_key, emitted_at, data, big, changed = row
    places = {field: Big(*place) for field, place in orjson.loads(big).items()} if big else {}
    times = orjson.loads(changed) if changed else {}
    return Stored(seq, stream, record_key, emitted_at, orjson.loads(data), places, times, len(data))


def _change(row: tuple[Any, ...]) -> Change:
    version, seq, fields = row
    return Change(version, seq, None if fields is None else frozenset(orjson.loads(fields)))
