"""Counts, sums, extremes and groups over the declared scalar fields of a stream."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from heapq import nsmallest
from operator import itemgetter
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from evidence import pointer
from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from evidence.model import GRANULARITIES, Buckets, Group
from evidence.work import checked
from service.records.engine import Cells, Selection, Snapshot
from service.keys import Sealer, identity
from service.ports import AggregateQuery
from service.records import lists
from service.records.forms import decimal_of_key, decimal_total, plain_decimal
from service.records.filters import tests_of
from service.records.local_time import FIRST, SPAN, Clock, buckets, key
from service.records.values import FieldType
from service.records.view import StreamView, View

# Sums of decimal fractions are rounded to this precision, far finer than the values.
DECIMALS = 9
LARGEST = 2**63 - 1
#: Groups that are counted between two looks at the deadline.
GROUPS_UNCHECKED = 1_024


@dataclass(frozen=True, slots=True)
class Source:
    """The records of one stream that count: those that both the grant and the filter select."""

    stream: StreamView
    selection: Selection

    def cells(self, field: str) -> Cells:
        return self.selection, self.stream.ordinals[self.stream.path(field)]

    def kind(self, field: str) -> FieldType:
        return self.stream.manifest.paths[self.stream.path(field)]


def aggregate(snapshot: Snapshot, view: View, query: AggregateQuery, sealer: Sealer) -> Buckets:
    """One value, or its groups, merged over all granted connections of a stream."""
    streams = view.stream(query.stream, query.connection_id)
    for name in ("field", "group_by", "group_by_time"):
        if field := getattr(query, name):
            lists.require_shared(view, streams, [field], name)
    lists.require_shared(view, streams, query.filter, "filter")
    _check(streams, query)
    sources = [
        Source(stream, stream.selection(tests_of(stream, query.filter))) for stream in streams
    ]
    count = lists.count(snapshot, [source.selection for source in sources])
    found = Buckets(
        stream=query.stream,
        metric=query.metric,
        field=query.field,
        group_by=query.group_by,
        group_by_time=query.group_by_time,
        granularity=query.granularity,
        time_zone=(query.time_zone or "UTC") if query.group_by_time else None,
        filtered_record_count=count,
    )
    if query.group_by or query.group_by_time:
        return _grouped(found, snapshot, sources, query, sealer, view.grant.grant_id)
    return replace(found, value=_value(snapshot, sources, query, count))


def _check(streams: Sequence[StreamView], query: AggregateQuery) -> None:
    """Refuses invalid combinations, then ungranted fields, then undeclared ones."""
    grouped = query.group_by or query.group_by_time
    if query.group_by and query.group_by_time:
        raise _invalid("Use group_by or group_by_time, not both.", "group_by")
    if grouped and query.metric != "count":
        raise _invalid("Groups support only metric='count'. Retry with that.", "metric")
    if query.metric == "count" and query.field is not None:
        raise _invalid("metric='count' counts records. Leave field out.", "field")
    if query.metric != "count" and query.field is None:
        raise _invalid(f"metric={query.metric!r} needs a field.", "field")
    if bool(query.group_by_time) != bool(query.granularity):
        words = ", ".join(GRANULARITIES)
        raise _invalid(
            f"group_by_time and granularity ({words}) must be used together.", "granularity"
        )
    if query.granularity and query.granularity not in GRANULARITIES:
        raise _invalid(f"granularity must be one of {', '.join(GRANULARITIES)}.", "granularity")
    if query.time_zone and not query.group_by_time:
        raise _invalid("time_zone needs group_by_time.", "time_zone")
    if query.limit is not None and not grouped:
        raise _invalid("limit needs group_by or group_by_time.", "limit")
    if query.cursor is not None and not grouped:
        raise _invalid("cursor needs group_by or group_by_time.", "cursor")
    _zone(query.time_zone)
    named = ((query.field, query.metric), (query.group_by, "group_by"))
    for field, kind in (*named, (query.group_by_time, "group_by_time")):
        for stream in streams if field else ():
            _declared(stream, str(field), kind)


def _declared(stream: StreamView, field: str, kind: str) -> None:
    param = kind if kind in ("group_by", "group_by_time") else "field"
    path = stream.path(field, param=param)
    allowed = stream.manifest.aggregations.get(kind, ())
    if path not in allowed or path not in stream.ordinals:
        usable = ", ".join(one for one in allowed if one in stream.ordinals) or "none"
        raise InvalidRequest(
            f"The stream {stream.name!r} does not support {kind} for {field!r}. Supported "
            f"fields: {usable}.",
            param=param,
        )


def _invalid(message: str, param: str) -> InvalidRequest:
    return InvalidRequest(message, param=param)


def _value(snapshot: Snapshot, sources: Sequence[Source], query: AggregateQuery, count: int) -> Any:
    if query.metric == "count":
        return count
    field = str(query.field)
    if query.metric == "count_distinct":
        return len(_by_value(snapshot, sources, field))
    if query.metric == "sum":
        if any(source.kind(field).is_decimal for source in sources):
            return _exact_sum(snapshot, sources, field)
        total = snapshot.total([source.cells(field) for source in sources])
        total = round(total, DECIMALS) if isinstance(total, float) else total
        return total if abs(total) <= LARGEST else float(total)
    return _extreme(snapshot, sources, query.metric, field)


def _exact_sum(snapshot: Snapshot, sources: Sequence[Source], field: str) -> str:
    counted = (
        (_number(kind, value), count) for kind, value, count in _groups(snapshot, sources, field)
    )
    return plain_decimal(decimal_total(counted))


def _groups(
    snapshot: Snapshot, sources: Sequence[Source], field: str
) -> Iterator[tuple[FieldType, Any, int]]:
    """(type, value, number of records) of each value of a field, for each type that it has."""
    alike = defaultdict[tuple[str, bool], list[Source]](list)
    for source in sources:
        kind = source.kind(field)
        alike[kind.type, kind.is_decimal].append(source)
    for some in alike.values():
        kind, groups = some[0].kind(field), snapshot.groups([one.cells(field) for one in some])
        for value, count in checked(groups, "counting values", GROUPS_UNCHECKED):
            yield kind, value, count


def _number(kind: FieldType, value: Any) -> Decimal:
    """The number in a cell."""
    return decimal_of_key(str(value)) if kind.is_decimal else Decimal(repr(value))


def _extreme(snapshot: Snapshot, sources: Sequence[Source], metric: str, field: str) -> Any:
    """The least or greatest value as the record spells it, None if there is none."""
    greatest, best = metric == "max", []
    asked = [partial(snapshot.extreme, one.cells(field), greatest=greatest) for one in sources]
    snapshot.ahead(asked)
    for source, ask in zip(sources, asked):
        if one := ask():
            kind, (value, seq) = source.kind(field), one
            best.append((_number(kind, value) if kind.is_number else value, seq, source))
    if not best:
        return None
    _, seq, source = (max if greatest else min)(best, key=lambda one: one[:2])
    return pointer.find(snapshot.load([seq])[seq].data, source.stream.path(field))


def _grouped(
    found: Buckets,
    snapshot: Snapshot,
    sources: Sequence[Source],
    query: AggregateQuery,
    sealer: Sealer,
    grant_id: str,
) -> Buckets:
    """The answer with a page of groups. The cursor is the order of the last group."""
    limit = query.limit or CONTRACT.groups_default
    bound = [grant_id, *identity(query)]
    after = sealer.open(query.cursor, bound=bound) if query.cursor else None
    ordered: list[tuple[list[Any], Any, int]]
    if query.group_by:
        counted = _by_value(snapshot, sources, query.group_by)
        ordered = [
            ([-n, str(name), type(name).__name__], name, n) for (_, name), n in counted.items()
        ]
    else:
        granularity = str(query.granularity)
        counts = sorted(buckets(granularity, _by_time(snapshot, sources, query)).items())
        ordered = [([first], first, n) for first, n in counts]
    left = [group for group in ordered if after is None or group[0] > after]
    shown = nsmallest(limit, left, key=itemgetter(0))
    names = [key(granularity, name) if query.group_by_time else name for _, name, _ in shown]
    more = len(left) > limit
    return replace(
        found,
        groups=tuple(Group(name, group[2]) for name, group in zip(names, shown)),
        limit=limit,
        other_count=sum(group[2] for group in left) - sum(group[2] for group in shown),
        group_count=len(ordered),
        next_cursor=sealer.seal(shown[-1][0], bound=bound) if more else None,
    )


def _by_value(
    snapshot: Snapshot, sources: Sequence[Source], field: str
) -> Counter[tuple[bool, Any]]:
    """How often each value occurs: (whether it is a boolean, value), as True equals 1."""
    counted = Counter[tuple[bool, Any]]()
    for kind, value, count in _groups(snapshot, sources, field):
        if kind.is_decimal:
            value = plain_decimal(decimal_of_key(str(value)))
        is_bool = kind.type == "boolean"
        counted[is_bool, bool(value) if is_bool else value] += count
    return counted


def _by_time(snapshot: Snapshot, sources: Sequence[Source], query: AggregateQuery) -> Counter[int]:
    """Counts by local minute, hour or day: the engine counts slots that no clock change divides."""
    fields = [source.cells(str(query.group_by_time)) for source in sources]
    spans = _spans(snapshot, [ordinal for _, ordinal in fields])
    clock = Clock(str(query.granularity), _zone(query.time_zone), spans)
    return clock.count(snapshot.slots(fields, FIRST, clock.slot))


def _spans(snapshot: Snapshot, ordinals: Sequence[int]) -> Iterator[int]:
    """The numbers of the spans in which some fields have times; gaps cost nothing."""
    at = snapshot.next_value(ordinals, FIRST)
    while at is not None:
        yield at // SPAN
        at = snapshot.next_value(ordinals, (at // SPAN + 1) * SPAN)


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _invalid(
            "time_zone is not a known IANA time zone. Use one such as Europe/Berlin or UTC.",
            "time_zone",
        ) from error
