"""Pages of an aggregate's groups: by the values of a field, or by local time.

Only the groups of a page are in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from evidence import pointer
from evidence.model import Group
from service.ports import AggregateQuery
from service.records.engine import Snapshot
from service.records.engine.later import Later, all_of
from service.records.engine.selections import Cells, Grouped, GroupRow, Selection, Test, Value
from evidence.manifest.forms import decimal_average, decimal_of_key, decimal_total, plain_decimal
from service.records.reading.local_time import FIRST, SPAN, Clock, key
from evidence.manifest.values import FieldType
from evidence.times import moment
from service.records.view.streams import StreamView

#: The kinds of keys, in their order. Equal values of different kinds are different groups.
KINDS: Final = ("number", "boolean", "time", "string", "decimal")


@dataclass(frozen=True, slots=True)
class Source:
    """The records of one stream that count: those that both the grant and the filter select.

    With `group`, only those with a value in that field.
    """

    stream: StreamView
    selection: Selection
    group: str | None = None

    def ordinal(self, name: str) -> int:
        return self.stream.ordinals[self.stream.path(name)]

    def cells(self, name: str) -> Cells:
        group = None if self.group is None else self.ordinal(self.group)
        return Cells(self.selection, self.ordinal(name), group)

    def field_type(self, name: str) -> FieldType:
        return self.stream.manifest.paths[self.stream.path(name)]

    def kind(self, name: str) -> int:
        """The number of a field's kind in `KINDS`."""
        kind = self.field_type(name)
        named = "decimal" if kind.is_decimal else "time" if kind.is_time else kind.type
        return KINDS.index(named) if named in KINDS else 0

    def narrowed(self, group: str, **bounds: Value) -> "Source":
        """The records whose value of `group` meets some comparisons."""
        tests = [Test(self.ordinal(group), operator, bounds[operator]) for operator in bounds]
        selection = replace(self.selection, tests=(*self.selection.tests, *tests))
        return Source(self.stream, selection, group)


Sources = Sequence[Source]


class Page(NamedTuple):
    """Groups, the number of all groups, the records in later ones, the last group's position."""

    groups: list[Group]
    group_count: int
    other_count: int
    position: list[Any] | None


def figures(snapshot: Snapshot, scopes: Sequence[Sources], query: AggregateQuery) -> list[Any]:
    """The metric of a field over the records of each scope, None if no value has one."""
    promises = [_figure(snapshot, sources, query) for sources in scopes]
    found = [promise.get() for promise in promises]
    if query.metric not in ("min", "max"):
        return found
    paths = {
        one.selection.stream: one.stream.path(str(query.field)) for some in scopes for one in some
    }
    records = snapshot.load({seq for seq in found if seq is not None}).get()
    loaded = [None if seq is None else records[seq] for seq in found]
    return [record and pointer.find(record.data, paths[record.stream]) for record in loaded]


def _figure(snapshot: Snapshot, sources: Sources, query: AggregateQuery) -> Later[Any]:
    """A sum, an average or a count; of `min` and `max` the seq of the record with the value."""
    name = str(query.field)
    if query.metric == "count_distinct":
        return snapshot.distinct([Grouped(one.cells(name), one.kind(name)) for one in sources])
    forms = {
        is_decimal: [one for one in sources if one.field_type(name).is_decimal == is_decimal]
        for is_decimal in (False, True)
    }
    if query.metric in ("sum", "avg"):
        totals = [
            snapshot.total([one.cells(name) for one in some], is_decimal=is_decimal)
            for is_decimal, some in forms.items()
            if some
        ]
        average = query.metric == "avg"
        return all_of(totals).then(lambda sums: _total(sums, average, bool(forms[True])))
    greatest = query.metric == "max"
    extremes = [
        snapshot.extreme([one.cells(name) for one in some], greatest=greatest)
        for some in filter(None, forms.values())
    ]
    return all_of(extremes).then(lambda ends: _extreme(chain.from_iterable(ends), greatest))


def _total(sums: Sequence[tuple[Decimal, int]], average: bool, is_decimal: bool) -> Any:
    """The sum of (sum, number of values) of several fields, or the average of the values."""
    total, count = decimal_total((total, 1) for total, _ in sums), sum(n for _, n in sums)
    if not average:
        return _shown(total, is_decimal)
    return _shown(decimal_average(total, count), is_decimal) if count else None


def _extreme(ends: Iterable[tuple[Value, int]], greatest: bool) -> int | None:
    """The seq of the record with the greatest or least of some values."""
    best = [(_number(value), seq) for value, seq in ends]
    return (max if greatest else min)(best)[1] if best else None


def by_value(
    snapshot: Snapshot, sources: Sources, query: AggregateQuery, after: list[Any] | None, limit: int
) -> Page:
    """A page of the groups of a field's values, largest figure first, then by value."""
    group, name = str(query.group_by), query.field
    fields = [
        Grouped(
            Cells(one.selection, one.ordinal(group)),
            one.kind(group),
            None if name is None else one.ordinal(name),
            0 if name is None else one.kind(name),
            name is not None and one.field_type(name).is_decimal,
        )
        for one in sources
    ]
    last = None if after is None else GroupRow(after[1], after[2], 0, after[0])
    found = snapshot.groups(fields, query.metric, last, limit)
    rows, is_decimal = found.rows, any(one.is_decimal for one in fields)
    values: list[Any] = [row.figure for row in rows]
    if query.metric in ("min", "max"):
        values = figures(snapshot, [_members(sources, group, row) for row in rows], query)
    elif query.metric == "avg":
        values = [
            None if value is None else _shown(decimal_average(_number(value), 1), is_decimal)
            for value in values
        ]
    elif query.metric == "sum":
        values = [_shown(_number(value), is_decimal) for value in values]
    position = [rows[-1].figure, rows[-1].kind, rows[-1].value] if rows else None
    return Page(
        [Group(_name(row, sources, group), row.records, value) for row, value in zip(rows, values)],
        found.groups,
        found.records_left - sum(row.records for row in rows),
        position,
    )


def _members(sources: Sources, group: str, row: GroupRow) -> list[Source]:
    """The records of a group."""
    return [
        source.narrowed(group, eq=row.value) for source in sources if source.kind(group) == row.kind
    ]


def _name(row: GroupRow, sources: Sources, group: str) -> Any:
    """The value of a group as an answer shows it."""
    kind = KINDS[row.kind]
    if kind == "decimal":
        return plain_decimal(decimal_of_key(str(row.value)))
    if kind == "time":
        text = moment(int(row.value))
        days = all(source.field_type(group).format == "date" for source in sources)
        return text[: len("2026-01-31")] if days else text
    return bool(row.value) if kind == "boolean" else row.value


def _number(value: Value) -> Decimal:
    """The number of a value, or of the key of a decimal."""
    return decimal_of_key(value) if isinstance(value, str) else Decimal(repr(value))


def _shown(number: Decimal, is_decimal: bool) -> int | float | str:
    """A number in JSON; text of a decimal, and of a number that would lose digits."""
    if not is_decimal:
        if number == number.to_integral_value() and -(2**63) <= number < 2**63:
            return int(number)
        if Decimal(repr(float(number))) == number:
            return float(number)
    return plain_decimal(number)


def by_time(
    snapshot: Snapshot,
    sources: Sources,
    query: AggregateQuery,
    zone: ZoneInfo,
    after: list[Any] | None,
    limit: int,
) -> Page:
    """A page of the buckets of a time field, in the order of time."""
    group, granularity = str(query.group_by_time), str(query.granularity)
    spans = list(_spans(snapshot, [source.ordinal(group) for source in sources]))
    clock, last = Clock(granularity, zone, spans or [0]), after[0] if after else -(2**62)
    cells = [source.cells(group) for source in sources]
    page = snapshot.units(cells, clock.offsets, clock.unit, granularity, last, limit)
    buckets = [(int(row.value), int(row.figure or 0), row.records) for row in page.rows]
    values: list[Any] = [None] * len(buckets)
    if query.metric != "count":
        scopes = [_within(sources, group, clock.spans(*units)) for *units, _ in buckets]
        values = figures(snapshot, scopes, query)
    return Page(
        [
            Group(key(granularity, first), records, value)
            for (first, _, records), value in zip(buckets, values)
        ],
        page.groups,
        page.records_left - sum(row.records for row in page.rows),
        [buckets[-1][0]] if buckets else None,
    )


def _within(sources: Sources, group: str, spans: Sequence[tuple[int, int]]) -> list[Source]:
    """The records of a bucket, whose times are in some spans."""
    return [source.narrowed(group, gte=start, lt=end) for source in sources for start, end in spans]


def _spans(snapshot: Snapshot, ordinals: Sequence[int]) -> Iterator[int]:
    """The numbers of the spans in which some fields have times; gaps cost nothing."""
    at = snapshot.next_value(ordinals, FIRST)
    while at is not None:
        yield at // SPAN
        at = snapshot.next_value(ordinals, (at // SPAN + 1) * SPAN)
