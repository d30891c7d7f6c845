"""The methods of a snapshot over PostgreSQL; see `engine.Snapshot` for what each returns."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final

from evidence.cached import cached_property
from evidence.limits import CONTRACT
from service.records.engine import Big, Loader, PassageKey, Stored, StreamRow
from service.records.engine.content import Content
from service.records.engine.later import Later, ready
from service.records.engine.selections import Cells, Value
from evidence.manifest.forms import MIDDLE, decimal_key, decimal_of_key, decimal_total
from evidence.work import portions
from service.records.postgres.asking import QueuedStatement
from service.records.postgres.connections import Rows
from service.records.postgres.keys import kept_value
from service.records.postgres.search import SearchMethods
from service.records.sql.snapshot import RECORDS, stored
from service.records.view.texts import chunks_of

#: Documents, and chunks of a large value, read at a time.
DOCUMENTS: Final = 10
CHUNKS: Final = 64
#: Records that are loaded before it is known which of them will be shown.
LOADED_EARLY_MOST: Final = 20

#: The zeros give a quotient enough digits to be rounded.
_QUOTIENT: Final = f"((sum(value) + 0.{'0' * 60}) / count(value))"
_DIGITS_17: Final = f"to_char({_QUOTIENT}, '9.9999999999999999EEEE')"
#: An average to 16 significant digits; an exact half is rounded to an even digit.
_AVERAGE: Final = f"""
CASE WHEN {_DIGITS_17} ~ '[02468]5e' AND {_DIGITS_17}::numeric = {_QUOTIENT}
THEN replace({_DIGITS_17}, '5e', 'e')::numeric
ELSE to_char({_QUOTIENT}, '9.999999999999999EEEE')::numeric END
"""
_KEY: Final = "convert_from(substr(v.key, 2), 'UTF8')"
_REVERSED: Final = f"translate({_KEY}, '0123456789~', '9876543210')"
_FRACTION: Final = "('0.' || substr({0}, 7) || 'e' || substr({0}, 2, 5)::integer - {1})::numeric"
#: The number of a decimal's key; see `forms.decimal_key`.
_DECIMAL: Final = f"""
CASE substr({_KEY}, 1, 1) WHEN '1' THEN 0 WHEN '2' THEN {_FRACTION.format(_KEY, MIDDLE)}
ELSE -{_FRACTION.format(_REVERSED, MIDDLE)} END
"""
_ZERO: Final = "timestamp '1970-01-01'"

_STREAMS = "stream s JOIN connection c ON c.id = s.conn"
_NAMES = f"""
SELECT c.connection_id, s.name FROM {_STREAMS}
ORDER BY c.connection_id COLLATE "C", s.name COLLATE "C"
"""
_LOAD = f"{RECORDS} WHERE d.seq = ANY(%s)"
_TEXT = """
SELECT value, no, text FROM unnest(%s::bigint[], %s::integer[]) p(value, no)
JOIN chunk USING (value, no)
"""
_CHUNKS = "SELECT text FROM chunk WHERE value = %s AND no BETWEEN %s AND %s ORDER BY no"
_FETCH = """
WITH place AS MATERIALIZED (SELECT (d.big::jsonb -> s.field ->> 0)::bigint AS value, p.no
  FROM unnest(%s::bigint[], %s::integer[], %s::integer[]) p(seq, ordinal, no)
  JOIN document d ON d.seq = p.seq AND d.big IS NOT NULL JOIN scope s ON s.ordinal = p.ordinal)
SELECT value, no, c.text FROM place JOIN chunk c USING (value, no)
"""


class PostgresSnapshot(SearchMethods):
    """One consistent view of a store. See `engine.Snapshot`."""

    whole = "v.number::bigint"
    commit_order = "version, generation"
    no_cursor = "''::bytea"
    streams = _STREAMS
    merges_fields = True
    figure = "?::numeric"
    metrics = {
        "count": "sum(n)::bigint",
        "sum": "coalesce(sum(value), 0)",
        "avg": _AVERAGE,
        "min": "min(value)",
        "max": "max(value)",
    }
    calendar = {
        name: f"date_trunc('{name}', {_ZERO} + unit * interval '1 day')::date - {_ZERO}::date"
        for name in ("week", "month", "quarter", "year")
    }

    #: The statement that reads the next chunks, several values together.
    _chunk_request: QueuedStatement | None = None

    def content(self) -> Content:
        from service.records.postgres.copying import PostgresContent

        return PostgresContent(self.db)

    def stream(self, connection_id: str, name: str) -> StreamRow | None:
        if self._connections is not None and connection_id not in self._connections:
            return None
        return self.catalog.stream(self.run, connection_id, name)

    def names(self) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self.run(_NAMES)]

    # Records

    def load(
        self, seqs: Iterable[int], passages: Sequence[PassageKey] = ()
    ) -> Later[dict[int, Stored]]:
        numbered = {
            (seq, ordinal, number)
            for seq, ordinal, start in passages
            for number in chunks_of(start, start + CONTRACT.passage_chars)
        }
        if numbered:
            self.request(_FETCH, *map(list, zip(*sorted(numbered))), keep=self._keep)
        return super().load(seqs)

    def loader(self, seqs: Sequence[int], passages: Sequence[PassageKey]) -> Loader:
        if len(seqs) > LOADED_EARLY_MOST:
            return self.load
        records = self.load(seqs, passages)
        return lambda some, passages: records

    def each(self, seqs: Iterable[int]) -> Iterator[Stored]:
        ordered = list(seqs)
        for batch in portions(ordered, DOCUMENTS):
            records = {row[0]: stored(row) for row in self.run(_LOAD, batch)}  # not kept
            yield from (records.pop(seq) for seq in batch if seq in records)

    # Large values

    def chunks(self, big: Big, first: int = 0, last: int | None = None) -> Iterator[str]:
        stop = big.chunks if last is None else last + 1
        for start in range(first, stop, CHUNKS):
            rows = self.run(_CHUNKS, big.first, start, min(start + CHUNKS, stop) - 1)
            yield from (text.decode() for (text,) in rows)

    def text(self, big: Big, first: int, last: int) -> Later[str]:
        keys = [(big.first, number) for number in range(first, last + 1)]
        if lacking := [key for key in keys if key not in self._chunks]:
            request = self._chunk_request
            if request is None or not request.waits():
                request = self._chunk_request = self.request(_TEXT, [], [], keep=self._keep)
            asked = set(zip(*request.values))
            for key in lacking:
                if key not in asked:
                    for column, number in zip(request.values, key):
                        column.append(number)
            return Later(partial(self.rows_of, request), request.waits).then(
                lambda _: self._joined(keys)
            )
        return ready(self._joined(keys))

    def _joined(self, keys: Sequence[tuple[int, int]]) -> str:
        return "".join(self._chunks[key].decode() for key in keys if key in self._chunks)

    def _keep(self, rows: Rows) -> None:
        self._chunks |= {(value, number): text for value, number, text in rows}

    @cached_property
    def _chunks(self) -> dict[tuple[int, int], bytes]:
        """The chunks that were read, by value and number."""
        return {}

    # Values of fields

    def number(self, is_decimal: bool, mixed: bool) -> str:
        return _DECIMAL if is_decimal else "v.number"

    def figure_of(self, value: Any) -> Value | None:
        return decimal_key(value) if isinstance(value, Decimal) else value

    def figure_parameter(self, figure: Value) -> Any:
        return decimal_of_key(figure) if isinstance(figure, str) else figure

    def total(self, fields: Sequence[Cells], *, is_decimal: bool) -> Later[tuple[Decimal, int]]:
        number = self.number(is_decimal, False)
        rows = self.cells(fields, f"coalesce(sum({number}), 0), count(*)")
        return rows.then(
            lambda rows: (decimal_total((total, 1) for total, _ in rows), sum(n for _, n in rows))
        )

    def extreme(self, fields: Sequence[Cells], *, greatest: bool) -> Later[list[tuple[Value, int]]]:
        order = "DESC" if greatest else "ASC"
        tail = f"ORDER BY v.key {order}, v.seq {order} LIMIT 1"
        rows = self.cells(fields, "v.key, v.number, v.seq", tail)
        return rows.then(lambda rows: [(kept_value(key, number), seq) for key, number, seq in rows])
