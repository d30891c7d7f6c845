"""Snapshot methods whose SQL is the same in every engine; see `engine.Snapshot`.

An engine adds the methods that need its own SQL, and runs statements whose parameters are `?`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final

import orjson

from service.records.engine.change_log import Change, RecordState, StreamChange
from service.records.engine import Big, BlobRow, Order, PassageKey, Position, Row, Scope, Stored
from service.records.engine.matches import Scoring
from service.records.engine.later import Later, ready
from service.records.engine.selections import Cells, Selection, Value
from service.records.sql.conditions import alike
from service.records.sql.vectors import VectorMethods

#: Rows of a log read at a time.
BATCH_ROWS: Final = 1_000

#: The columns that `stored` reads.
RECORDS: Final = """
SELECT d.seq, r.stream, r.record_key, d.emitted_at, d.data, d.big, d.changed
FROM document d JOIN record r ON r.seq = d.seq
"""
_LAST_CHANGE = """
SELECT coalesce(d.emitted_at, t.deleted_at)
FROM change c LEFT JOIN document d USING (seq) LEFT JOIN tombstone t USING (seq)
WHERE c.stream = ? ORDER BY c.version DESC LIMIT 1
"""
_STATE = """
SELECT r.record_key, r.at, t.deleted_at FROM record r LEFT JOIN tombstone t USING (seq)
WHERE r.seq = ?
"""
#: The next two records of a thread in one direction; one that fails the tests has no seq.
_SIDE = """
SELECT CASE WHEN {3} THEN n.seq END AS seq FROM record n
WHERE n.stream = r.stream AND n.thread = r.thread
  AND (n.place, n.record_key) {0} (r.place, r.record_key) AND {4}
ORDER BY n.place {1}, n.record_key {2} LIMIT 2
"""
_LOG = "SELECT version, seq, fields, was_at, left_at FROM change"
_CHANGED = """
SELECT c.connection_id, s.name, count(DISTINCT l.seq), max(l.version)
FROM {} JOIN change l ON l.stream = s.id AND l.version > ?
GROUP BY c.connection_id, s.name ORDER BY 4
"""
_BLOBS = """
SELECT b.id, u.media_type, b.size_bytes, b.sha256, u.field, u.seq FROM blob b
JOIN blob_use u ON u.blob = b.id JOIN record r ON r.seq = u.seq
"""
_BLOB_PART = """
SELECT data FROM blob_part p JOIN blob b ON b.id = p.blob
WHERE p.blob = ? AND b.sha256 = ? AND p.no = ?
"""


class SharedMethods(VectorMethods):
    """The methods that need only `later`."""

    scoring: Scoring | None = None
    #: A constant to sort by if the order has no cursor.
    no_cursor: ClassVar[str]
    #: An array of the one column of a statement, which has the name `seq`.
    array: ClassVar[str]
    #: Streams `s` that are not hidden, and their connections `c`.
    streams: ClassVar[str]
    #: The columns of `commit_log` by which commits ascend.
    commit_order: ClassVar[str] = "version"

    def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of a statement, if any."""
        rows = self.run(sql, *values)
        return rows[0] if rows else None

    def meta(self, key: str) -> Any:
        row = self.row("SELECT value FROM meta WHERE key = ?", key)
        return None if row is None else row[0]

    # Records

    def page(
        self, selections: Sequence[Selection], order: Order, after: Position | None, limit: int
    ) -> list[Row]:
        columns = ("r.cursor" if order.by_cursor else self.no_cursor, "r.record_key")
        keyset = columns if order.by_cursor else columns[1:]
        direction, beyond = ("DESC", "<") if order.descending else ("ASC", ">")
        sort = ", ".join(f"{column} {direction}" for column in keyset)
        branches, values = [], list[Any]()
        for number, selection in enumerate(selections):
            condition = self.selected(selection)
            if after is not None:
                key = [after.record_key]
                edge = [self.encode(after.cursor), *key] if order.by_cursor else key
                past = beyond + ("=" if number > after.selection else "")
                condition.add(f"({', '.join(keyset)}) {past} ({', '.join('?' * len(edge))})", *edge)
            branches.append(
                f"SELECT * FROM (SELECT r.seq, {', '.join(columns)}, {number} FROM record r"
                f" WHERE {condition.sql()} ORDER BY {sort} LIMIT {limit}) p{number}"
            )
            values += condition.values
        merged = " UNION ALL ".join(branches)
        rows = self.run(
            f"{merged} ORDER BY 2 {direction}, 3 {direction}, 4 ASC LIMIT {limit}", *values
        )
        return [
            Row(seq, Position(self.decode(cursor), key, number))
            for seq, cursor, key, number in rows
        ]

    def find(self, selection: Selection, record_key: str) -> Later[Stored | None]:
        condition = self.selected(selection)
        condition.add("r.record_key = ?", record_key)
        rows = self.later(f"{RECORDS} WHERE {condition.sql()}", *condition.values)
        return rows.then(lambda rows: stored(rows[0]) if rows else None)

    def count(self, selection: Selection) -> Later[int]:
        if len({test.ordinal for test in selection.tests}) == 1:
            rows = self.cells([Cells(selection, selection.tests[0].ordinal)], "count(*)")
            return rows.then(lambda rows: int(rows[0][0]))
        return self.span(selection).then(lambda span: span[0])

    def span(self, selection: Selection) -> Later[tuple[int, int | None, int | None]]:
        condition = self.selected(selection)
        sql = f"SELECT count(*), min(r.at), max(r.at) FROM record r WHERE {condition.sql()}"
        return self.later(sql, *condition.values).then(lambda rows: rows[0])

    def load(
        self, seqs: Iterable[int], passages: Sequence[PassageKey] = ()
    ) -> Later[dict[int, Stored]]:
        sql = f"{RECORDS} WHERE {self.in_list.format('d.seq')}"
        rows = self.later(sql, self.list_parameter(seqs))
        return rows.then(lambda rows: {row[0]: stored(row) for row in rows})

    def related(
        self, selection: Selection, ordinal: int, keys: Sequence[Value], order: Order, limit: int
    ) -> list[int]:
        condition = self.selected(selection)
        same = f"c.{self.compared} IN ({', '.join('?' * len(keys))})"
        condition.add(
            f"r.seq IN (SELECT c.seq FROM cell c WHERE c.ordinal = ? AND {same})",
            ordinal,
            *map(self.encode, keys),
        )
        direction = "DESC" if order.descending else "ASC"
        sort = f"r.cursor {direction}, r.record_key" if order.by_cursor else "r.record_key"
        sql = f"SELECT r.seq FROM record r WHERE {condition.sql()} ORDER BY {sort} LIMIT ?"
        return [seq for (seq,) in self.run(sql, *condition.values, limit)]

    # Search

    def unpacked(self, array: Any) -> list[int | None]:
        """The values of an `array` of SQL."""
        numbers: list[int | None] = array
        return numbers

    def neighbours(self, scope: Scope, seqs: Sequence[int]) -> Later[dict[int, dict[int, int]]]:
        if not (seqs and scope.selections):
            return ready({})
        parts, values = list[str](), list[Any]()
        for group in alike(scope.selections):
            tested, _ = self.tested(group, record="n")
            inside = self.in_limit(group[0].limit, record="n")
            inside.add(self.live.format("n"))
            sides = (
                self.array.format(
                    _SIDE.format(beyond, *2 * [direction], tested.sql() or "true", inside.sql())
                )
                for beyond, direction in (("<", "DESC"), (">", "ASC"))
            )
            streams, ids = self.equals_any("r.stream", [selection.stream for selection in group])
            records = self.in_list.format("r.seq")
            parts.append(
                f"SELECT r.seq, {', '.join(sides)} FROM record r"
                f" WHERE {records} AND {streams} AND r.thread IS NOT NULL"
            )
            values += [*2 * [*tested.values, *inside.values], self.list_parameter(seqs), ids]
        return self.later(" UNION ALL ".join(parts), *values).then(
            lambda rows: {
                seq: {
                    neighbour: away
                    for side in sides
                    for away, neighbour in enumerate(self.unpacked(side), start=1)
                    if neighbour is not None
                }
                for seq, *sides in rows
            }
        )

    # Changes

    def changes(self, stream: int, after: int) -> Iterator[Change]:
        sql = f"{_LOG} WHERE stream = ? AND version > ? ORDER BY version LIMIT {BATCH_ROWS}"
        while True:
            rows = self.run(sql, stream, after)
            yield from map(_change, rows)
            if len(rows) < BATCH_ROWS:
                return
            after = rows[-1][0]

    def later_changes(self, seq: int, after: int) -> Iterator[Change]:
        return map(
            _change, self.run(f"{_LOG} WHERE seq = ? AND version > ? ORDER BY version", seq, after)
        )

    def last_change(self, stream: int) -> str | None:
        row = self.row(_LAST_CHANGE, stream)
        return None if row is None else row[0]

    def changed_streams(self, after: int) -> list[StreamChange]:
        return [StreamChange(*row) for row in self.run(_CHANGED.format(self.streams), after)]

    def epoch(self, version: int) -> str | None:
        order = f"ORDER BY {self.commit_order} LIMIT 1"
        row = self.row(f"SELECT epoch FROM commit_log WHERE version >= ? {order}", version)
        return None if row is None else row[0]

    def state(self, seq: int) -> RecordState:
        return RecordState(*self.run(_STATE, seq)[0])

    # Blobs

    def blobs(self, selection: Selection, blob_id: str) -> list[BlobRow]:
        for column in ("b.sha256", "u.blob_id"):  # no name hides the bytes of a hash
            condition = self.selected(selection)
            condition.add(f"{column} = ?", blob_id)
            sql = f"{_BLOBS} WHERE {condition.sql()} ORDER BY u.seq, u.field"
            if rows := self.run(sql, *condition.values):
                return [BlobRow(*row) for row in rows]
        return []

    def blob_of(self, seq: int, field: str, blob_id: str, sha256: str | None) -> BlobRow | None:
        where = "u.seq = ? AND u.field = ? AND u.blob_id = ?"
        rows = self.run(f"{_BLOBS} WHERE {where} ORDER BY b.id", seq, field, blob_id)
        blobs = [row for row in map(BlobRow._make, rows) if sha256 in (None, row.sha256)]
        return blobs[0] if blobs else None

    def blob_content(self, blob: BlobRow) -> bytes:
        rows = self.run("SELECT data FROM blob_part WHERE blob = ? ORDER BY no", blob.key)
        return b"".join(data for (data,) in rows)

    def blob_part(self, blob: BlobRow, number: int) -> bytes | None:
        row = self.row(_BLOB_PART, blob.key, blob.sha256, number)
        return None if row is None else row[0]


def stored(row: tuple[Any, ...]) -> Stored:
    """A record from its columns in `RECORDS`."""
    seq, stream, record_key, emitted_at, data, big, changed = row
    places = {field: Big(*location) for field, location in orjson.loads(big).items()} if big else {}
    times = orjson.loads(changed) if changed else {}
    return Stored(seq, stream, record_key, emitted_at, orjson.loads(data), places, times, len(data))


def _change(row: tuple[Any, ...]) -> Change:
    version, seq, fields, *times = row
    return Change(version, seq, None if fields is None else frozenset(orjson.loads(fields)), *times)
