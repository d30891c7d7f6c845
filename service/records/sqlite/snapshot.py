"""The methods of a snapshot over SQLite; see `engine.Snapshot` for what each returns."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal

import orjson

from service.records.engine import Big, Generation, Loader, PassageKey, Stored, StreamRow
from service.records.engine.content import Content
from service.records.engine.later import Later
from service.records.engine.selections import Cells, Value
from evidence.manifest import parse_stored
from evidence.manifest.forms import decimal_of_key, decimal_total
from service.records.sql.snapshot import stored
from service.records.engine.matches import Scoring
from service.records.sqlite.search import SearchMethods

_STREAM = """
SELECT s.id, s.manifest, c.connector_key, c.display_name,
  (SELECT json_group_array(json_array(o.ordinal, o.field, o.searchable, json(o.languages)))
     FROM scope o WHERE o.stream = s.id)
FROM stream s JOIN connection c ON c.id = s.connection
WHERE c.connection_id = ? AND s.name = ?
"""
_STREAMS = "stream s JOIN connection c ON c.id = s.connection AND s.name >= char(1)"
_NAMES = f"SELECT c.connection_id, s.name FROM {_STREAMS} ORDER BY 1, 2"
# CROSS JOIN: the list is the outer loop, so rows come in its order and one at a time.
_EACH = """
SELECT d.seq, r.stream, r.record_key, d.emitted_at, d.data, d.big, d.changed
FROM json_each(?) e CROSS JOIN document d ON d.seq = e.value CROSS JOIN record r ON r.seq = d.seq
"""
#: A day, as days since 1970, of the date that modifiers make of the day `unit`.
_DAY = "CAST(julianday(unit * 86400, 'unixepoch', {}) - 2440587.5 AS integer)"
_MONTHS = "(strftime('%m', unit * 86400, 'unixepoch') - 1) % 3"


class SqliteSnapshot(SearchMethods):
    """One consistent view of a store file. See `engine.Snapshot`."""

    whole = "v.value"
    no_cursor = "0"
    streams = _STREAMS
    merges_fields = False  # an index gives one field's values in their order
    figure = "?"
    metrics = {
        "count": "sum(n)",
        "sum": "exact_sum(value)",
        "avg": "exact_avg(value)",
        "min": "min(value)",
        "max": "max(value)",
    }
    calendar = {
        "week": _DAY.format("'-6 days', 'weekday 1'"),
        "month": _DAY.format("'start of month'"),
        "quarter": _DAY.format(f"'start of month', '-' || ({_MONTHS}) || ' months'"),
        "year": _DAY.format("'start of year'"),
    }

    def __init__(
        self, db: sqlite3.Connection, generation: Generation, scoring: Scoring | None = None
    ) -> None:
        self.db = db
        self._generation = generation
        self.scoring = scoring
        self._blocks, self._small = {}, {}
        self._first_passages = {}
        self._last_rows = dict[int, str]()

    def generation(self, expected: Generation | None = None) -> Generation:
        return self._generation

    def content(self) -> Content:
        from service.records.sqlite.copying import SqliteContent

        return SqliteContent(self.db)

    def confine(self, connection_ids: Iterable[str] | None) -> None:
        """Does nothing: a reader of the file can read all of it."""

    def stream(self, connection_id: str, name: str) -> StreamRow | None:
        row = self.row(_STREAM, connection_id, name)
        if row is None:
            return None
        id, text, connector_key, display_name, scopes = row
        fields = orjson.loads(scopes)
        return StreamRow(
            id,
            parse_stored(text),
            connector_key,
            display_name,
            {field: ordinal for ordinal, field, *_ in fields},
            frozenset(field for _, field, searchable, _ in fields if searchable),
            {field: tuple(languages) for _, field, _, languages in fields},
        )

    def names(self) -> list[tuple[str, str]]:
        return self.db.execute(_NAMES).fetchall()

    # Records

    def loader(self, seqs: Sequence[int], passages: Sequence[PassageKey]) -> Loader:
        return self.load

    def each(self, seqs: Iterable[int]) -> Iterator[Stored]:
        with closing(self.db.execute(_EACH, (self.list_parameter(seqs),))) as rows:
            yield from map(stored, rows)

    # Large values

    def chunks(self, big: Big, first: int = 0, last: int | None = None) -> Iterator[str]:
        stop = big.chunks - 1 if last is None else last
        rows = self.db.execute(
            "SELECT text FROM chunk WHERE id BETWEEN ? AND ? ORDER BY id",
            (big.first + first, big.first + stop),
        )
        return (text for (text,) in rows)

    def text(self, big: Big, first: int, last: int) -> Later[str]:
        return Later(lambda: self._text(range(big.first + first, big.first + last + 1)))

    def _text(self, ids: range) -> str:
        """The text of some rows. Those read last stay: passages of one value share them."""
        if not self._last_rows.keys() >= {*ids}:
            rows = self.run("SELECT id, text FROM chunk WHERE id BETWEEN ? AND ?", ids[0], ids[-1])
            self._last_rows = dict(rows)
        return "".join([self._last_rows[id] for id in ids if id in self._last_rows])

    # Values of fields

    def number(self, is_decimal: bool, mixed: bool) -> str:
        return "exact_key(v.value)" if mixed and not is_decimal else "v.value"

    def total(self, fields: Sequence[Cells], *, is_decimal: bool) -> Later[tuple[Decimal, int]]:
        return self.cells(fields, "exact_sum(v.value), count(v.value)").then(_total)

    def extreme(self, fields: Sequence[Cells], *, greatest: bool) -> Later[list[tuple[Value, int]]]:
        order = "DESC" if greatest else "ASC"
        tail = f"ORDER BY v.value {order}, v.seq {order} LIMIT 1"
        return self.cells(fields, "v.value, v.seq", tail)


def _total(rows: Iterable[tuple[str | None, int]]) -> tuple[Decimal, int]:
    """(sum, number) of values from the sums and numbers of several fields."""
    sums = list(rows)
    total = decimal_total((decimal_of_key(key), 1) for key, _ in sums if key is not None)
    return total, sum(count for _, count in sums)
