"""Pages of groups of an aggregate: by the values of a field, or by local time.

Only the groups of a page are in memory. A page by time first counts the records of each bucket,
then computes the figures of the buckets that it shows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from evidence import pointer
from evidence.model import Group
from evidence.work import checked
from service.ports import AggregateQuery
from service.records.engine import Snapshot
from service.records.engine.selections import Cells, Grouped, GroupRow, Selection, Test, Value
from evidence.manifest.forms import decimal_average, decimal_of_key, decimal_total, plain_decimal
from service.records.reading.local_time import FIRST, SPAN, Clock, first_unit, key
from evidence.manifest.values import FieldType
from evidence.times import moment
from service.records.view import StreamView

#: Slots of time that one statement counts.
SLOTS_TOGETHER: Final = 65_536
#: Buckets that may still get records: a clock change repeats two days of minutes at most.
BUCKETS_OPEN: Final = 8_192
#: Groups that are counted between two looks at the deadline.
GROUPS_UNCHECKED: Final = 1_024
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


class Page(NamedTuple):
    """Groups, the number of all groups, the records in later ones, the last group's position."""

    groups: list[Group]
    group_count: int
    other_count: int
    position: list[Any] | None


@dataclass(slots=True)
class Bucket:
    """The records of a bucket of time, and the spans of time in which they are."""

    count: int
    spans: list[tuple[int, int]]


def figures(
    snapshot: Snapshot, scopes: Sequence[Sequence[Source]], query: AggregateQuery
) -> list[Any]:
    """The metric of a field over the records of each scope, None if no value has one."""
    calls = [partial(_figure, snapshot, sources, query) for sources in scopes]
    snapshot.ahead(calls)
    found = [call() for call in calls]
    if query.metric not in ("min", "max"):
        return found
    paths = {
        one.selection.stream: one.stream.path(str(query.field)) for some in scopes for one in some
    }
    records = snapshot.load({seq for seq in found if seq is not None})
    loaded = [None if seq is None else records[seq] for seq in found]
    return [record and pointer.find(record.data, paths[record.stream]) for record in loaded]


def _figure(snapshot: Snapshot, sources: Sequence[Source], query: AggregateQuery) -> Any:
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
        total, count = decimal_total((total, 1) for total, _ in totals), sum(n for _, n in totals)
        if query.metric == "sum":
            return _shown(total, bool(forms[True]))
        return _shown(decimal_average(total, count), bool(forms[True])) if count else None
    greatest, best = query.metric == "max", list[tuple[Decimal, int]]()
    for some in filter(None, forms.values()):
        extremes = snapshot.extreme([one.cells(name) for one in some], greatest=greatest)
        best += [(_number(value), seq) for value, seq in extremes]
    if not best:
        return None
    return (max if greatest else min)(best)[1]


def by_value(
    snapshot: Snapshot,
    sources: Sequence[Source],
    query: AggregateQuery,
    after: list[Any] | None,
    limit: int,
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


def _members(sources: Sequence[Source], group: str, row: GroupRow) -> list[Source]:
    """The records of a group."""
    return [
        source.narrowed(group, eq=row.value) for source in sources if source.kind(group) == row.kind
    ]


def _name(row: GroupRow, sources: Sequence[Source], group: str) -> Any:
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
    sources: Sequence[Source],
    query: AggregateQuery,
    zone: ZoneInfo,
    after: list[Any] | None,
    limit: int,
) -> Page:
    """A page of the buckets of a time field, in the order of time."""
    group, granularity = str(query.group_by_time), str(query.granularity)
    spans = list(_spans(snapshot, [source.ordinal(group) for source in sources]))
    clock, last = Clock(granularity, zone, spans), after[0] if after else -(2**62)
    shown, group_count, other_count = dict[int, Bucket](), 0, 0
    if clock.is_fine and spans:
        cells = [source.cells(group) for source in sources]
        page = snapshot.units(cells, clock.offsets, clock.unit, last, limit)
        shown = {int(row.value): _bucket(clock, row) for row in page.rows}
        group_count = page.groups
        other_count = page.records_left - sum(row.records for row in page.rows)
    for first, bucket in () if clock.is_fine else _buckets(snapshot, sources, clock, query, spans):
        group_count += 1
        if first <= last:
            continue
        if len(shown) < limit:
            shown[first] = bucket
        else:
            other_count += bucket.count
    values: list[Any] = [None] * len(shown)
    if query.metric != "count":
        scopes = [_within(sources, group, bucket) for bucket in shown.values()]
        values = figures(snapshot, scopes, query)
    return Page(
        [
            Group(key(granularity, first), bucket.count, value)
            for (first, bucket), value in zip(shown.items(), values)
        ],
        group_count,
        other_count,
        [max(shown)] if shown else None,
    )


def _bucket(clock: Clock, row: GroupRow) -> Bucket:
    return Bucket(row.records, clock.spans(int(row.value)))


def _within(sources: Sequence[Source], group: str, bucket: Bucket) -> list[Source]:
    """The records of a bucket."""
    return [
        source.narrowed(group, gte=start, lt=stop)
        for source in sources
        for start, stop in bucket.spans
    ]


def _buckets(
    snapshot: Snapshot,
    sources: Sequence[Source],
    clock: Clock,
    query: AggregateQuery,
    spans: Sequence[int],
) -> Iterator[tuple[int, Bucket]]:
    """(first unit, bucket) of each bucket with records, in the order of time."""
    group, granularity = str(query.group_by_time), str(query.granularity)
    buckets, current = dict[int, Bucket](), None
    slots = _slots(snapshot, sources, group, clock.slot, spans)
    counted = checked(clock.units(slots), "counting values", GROUPS_UNCHECKED)
    for unit, time, count in counted:
        first = first_unit(granularity, unit)
        bucket = buckets.get(first)
        if bucket is None:
            bucket = buckets[first] = Bucket(count, [(time, time + clock.slot)])
        else:
            start = bucket.spans.pop()[0] if first == current else time
            bucket.spans.append((start, time + clock.slot))
            bucket.count += count
        current = first
        if len(buckets) > BUCKETS_OPEN:
            for early in sorted(buckets)[: BUCKETS_OPEN // 2]:
                yield early, buckets.pop(early)
    for first in sorted(buckets):
        yield first, buckets[first]


def _slots(
    snapshot: Snapshot, sources: Sequence[Source], group: str, width: int, spans: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """(start, number of records) of each slot of `width` microseconds, in the order of time.

    No clock change divides a slot.
    """
    if len(spans) * SPAN <= SLOTS_TOGETHER * width:
        yield from snapshot.slots([source.cells(group) for source in sources], FIRST, width)
        return
    step = SLOTS_TOGETHER * width
    for start in _steps(spans, step):
        narrowed = [source.narrowed(group, gte=start, lt=start + step) for source in sources]
        fields = [Cells(one.selection, one.ordinal(group)) for one in narrowed]
        yield from snapshot.slots(fields, FIRST, width)


def _steps(spans: Sequence[int], step: int) -> Iterable[int]:
    """The multiples of `step` from `FIRST` on, at which parts of the spans begin."""
    numbers = (
        number
        for span in spans
        for number in range(
            (max(span * SPAN, FIRST) - FIRST) // step, ((span + 1) * SPAN - 1 - FIRST) // step + 1
        )
    )
    return (FIRST + number * step for number in dict.fromkeys(numbers))


def _spans(snapshot: Snapshot, ordinals: Sequence[int]) -> Iterator[int]:
    """The numbers of the spans in which some fields have times; gaps cost nothing."""
    at = snapshot.next_value(ordinals, FIRST)
    while at is not None:
        yield at // SPAN
        at = snapshot.next_value(ordinals, (at // SPAN + 1) * SPAN)
