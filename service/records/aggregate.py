"""Counts, sums, extremes and groups over the declared scalar fields of a stream."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from evidence.model import GRANULARITIES
from service.cursors import Sealer
from service.ports import AggregateQuery, Filter
from service.records import documents, lists
from service.records.filters import Condition, compile_filter, tests_of
from service.records.local_time import FIRST, SPAN, Clock, buckets, key
from service.records.view import StreamView, View, limits

# Sums of decimal fractions are rounded here, far below what they are given with.
DECIMALS = 9
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Source:
    """The records of one stream that count: those the grant shows, of them what the filter does."""

    stream: StreamView
    filter: Filter
    condition: Condition

    def count(self) -> tuple[str, list[Any]]:
        """SQL and its parameters that tell how many records count."""
        if len(self.filter) == 1:
            return self.cells(next(iter(self.filter)), "count(*)")
        return self.records("count(*)")

    def records(self, columns: str, joined: str = "") -> tuple[str, list[Any]]:
        """SQL and its parameters over every record that counts, as `record r`."""
        clause, values = limits(self.stream)
        sql = (
            f"SELECT {columns} FROM record r {joined} "
            f"WHERE r.stream = ? AND r.deleted = 0 AND {self.condition.sql()} AND {clause}"
        )
        return sql, [self.stream.id, *self.condition.values, *values]

    def cells(self, field: str, columns: str, tail: str = "") -> tuple[str, list[Any]]:
        """SQL and its parameters over their values of a field, as `cell v`."""
        ordinal = self.stream.ordinals[field]
        tests = self._tests(field)
        if tests is None:
            join = f"JOIN cell v ON v.seq = r.seq AND v.ordinal = {ordinal}"
            sql, values = self.records(columns, join)
            return f"{sql} {tail}", values
        clauses = ["v.ordinal = ?", *(f"v.value {operator} ?" for operator, _ in tests)]
        sql = f"SELECT {columns} FROM cell v WHERE {' AND '.join(clauses)} {tail}"
        return sql, [ordinal, *(value for _, value in tests)]

    def _tests(self, field: str) -> list[tuple[str, Any]] | None:
        """What tells by a field's values alone that a record counts; None where nothing does.

        Only live records have values there, and the time a grant limits is that of one field.
        """
        stream = self.stream
        if stream.resources is not None or any(name != field for name in self.filter):
            return None
        limits = ((">=", stream.since), ("<", stream.until))
        found = [(operator, bound) for operator, bound in limits if bound is not None]
        if found and field != stream.manifest.time_field:
            return None
        for spec in self.filter.values():
            found += tests_of(stream, field, spec)
        return found


def aggregate(
    db: sqlite3.Connection, view: View, query: AggregateQuery, sealer: Sealer
) -> dict[str, Any]:
    """One figure or its groups over all granted connections of a stream, merged."""
    streams = view.stream(query.stream, query.connection_id)
    for name in ("field", "group_by", "group_by_time"):
        if field := getattr(query, name):
            lists.require_shared(view, streams, [field], name)
    lists.require_shared(view, streams, query.filter, "filter")
    _check(streams, query)
    sources = [
        Source(stream, query.filter, compile_filter(db, stream, query.filter)) for stream in streams
    ]
    body: dict[str, Any] = {
        "object": "aggregation",
        "stream": query.stream,
        "metric": query.metric,
        "field": query.field,
        "group_by": query.group_by,
        "group_by_time": query.group_by_time,
        "granularity": query.granularity,
        "time_zone": (query.time_zone or "UTC") if query.group_by_time else None,
        "approximate": False,
        "filtered_record_count": sum(_scalar(db, *source.count()) for source in sources),
    }
    if query.group_by or query.group_by_time:
        body.update(_groups(db, sources, query, sealer, view.grant.grant_id))
    else:
        body["value"] = _value(db, sources, query, body["filtered_record_count"])
    body["meta"] = {"count": {"kind": "none"}, "warnings": []}
    return body


def _check(streams: Sequence[StreamView], query: AggregateQuery) -> None:
    """Refuses what does not go together, then what is not granted, then what is not declared."""
    grouped = query.group_by or query.group_by_time
    if query.group_by and query.group_by_time:
        raise _invalid("Give group_by or group_by_time, not both.", "group_by")
    if grouped and query.metric != "count":
        raise _invalid("Groups are counted only: retry with metric='count'.", "metric")
    if query.metric == "count" and query.field is not None:
        raise _invalid("metric='count' counts records: leave field out.", "field")
    if query.metric != "count" and query.field is None:
        raise _invalid(f"metric={query.metric!r} needs a field.", "field")
    if bool(query.group_by_time) != bool(query.granularity):
        words = ", ".join(GRANULARITIES)
        raise _invalid(f"group_by_time and granularity ({words}) go together.", "granularity")
    if query.granularity and query.granularity not in GRANULARITIES:
        raise _invalid(f"granularity is one of {', '.join(GRANULARITIES)}.", "granularity")
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
    stream.require(field, param=param)
    allowed = stream.manifest.aggregations.get(kind, ())
    if field not in allowed or field not in stream.ordinals:
        usable = ", ".join(name for name in allowed if name in stream.granted) or "none"
        raise InvalidRequest(
            f"{kind} is not declared for {field!r} in stream {stream.name!r}. Fields: {usable}.",
            param=param,
        )


def _invalid(message: str, param: str) -> InvalidRequest:
    return InvalidRequest(message, param=param)


def _scalar(db: sqlite3.Connection, sql: str, values: Any) -> Any:
    return db.execute(sql, values).fetchone()[0]


def _value(
    db: sqlite3.Connection, sources: Sequence[Source], query: AggregateQuery, count: int
) -> Any:
    if query.metric == "count":
        return count
    field = str(query.field)
    if query.metric == "count_distinct":
        seen: set[Any] = set()
        for source in sources:
            rows = db.execute(*source.cells(field, "DISTINCT v.value"))
            seen.update(value for (value,) in rows)
        return len(seen)
    if query.metric == "sum":
        total = sum(_sum(db, source, field) for source in sources)
        total = round(total, DECIMALS) if isinstance(total, float) else total
        return total if abs(total) <= LARGEST else float(total)
    return _extreme(db, sources, query.metric, field)


def _sum(db: sqlite3.Connection, source: Source, field: str) -> int | float:
    """The sum, exact where it is a 64-bit integer."""
    try:
        return _scalar(db, *source.cells(field, "sum(v.value)")) or 0
    except sqlite3.OperationalError as error:
        if "integer overflow" not in str(error):
            raise
        return float(_scalar(db, *source.cells(field, "total(v.value)")))


def _extreme(db: sqlite3.Connection, sources: Sequence[Source], metric: str, field: str) -> Any:
    """The least or greatest value as the record spells it, None where there is none."""
    order = "ASC" if metric == "min" else "DESC"
    best = []
    for source in sources:
        tail = f"ORDER BY v.value {order}, v.seq {order} LIMIT 1"
        best += db.execute(*source.cells(field, "v.value, v.seq", tail)).fetchall()
    if not best:
        return None
    _, seq = (min if metric == "min" else max)(best)
    return documents.load(db, [seq])[seq].data.get(field)


def _groups(
    db: sqlite3.Connection,
    sources: Sequence[Source],
    query: AggregateQuery,
    sealer: Sealer,
    grant_id: str,
) -> dict[str, Any]:
    """A page of groups. The cursor is the place of its last group: (order, key, count)."""
    limit = query.limit or CONTRACT.groups_default
    bound = ["aggregate", grant_id, query.stream, query.connection_id, query.filter]
    bound += [query.group_by, query.group_by_time, query.granularity, query.time_zone]
    after = sealer.open(query.cursor, bound=bound) if query.cursor else None
    ordered: list[tuple[list[Any], Any, int]]
    if query.group_by:
        counted = _by_value(db, sources, query.group_by)
        ordered = sorted(
            [([-n, str(name), type(name).__name__], name, n) for name, n in counted.items()],
            key=lambda group: group[0],
        )
    else:
        granularity = str(query.granularity)
        found = sorted(buckets(granularity, _by_time(db, sources, query)).items())
        ordered = [([first], first, n) for first, n in found]
    left = [group for group in ordered if after is None or group[0] > after]
    shown = left[:limit]
    names = [key(granularity, name) if query.group_by_time else name for _, name, _ in shown]
    more = len(left) > limit
    return {
        "groups": [{"key": name, "count": group[2]} for name, group in zip(names, shown)],
        "limit": limit,
        "other_count": sum(group[2] for group in left[limit:]),
        "group_count": len(ordered),
        "next_cursor": sealer.seal(shown[-1][0], bound=bound) if more else None,
    }


def _by_value(db: sqlite3.Connection, sources: Sequence[Source], field: str) -> Counter[Any]:
    counted: Counter[Any] = Counter()
    for source in sources:
        boolean = source.stream.manifest.fields[field].type == "boolean"
        rows = db.execute(*source.cells(field, "v.value, count(*)", "GROUP BY v.value"))
        for value, count in rows:
            counted[bool(value) if boolean else value] += count
    return counted


def _by_time(
    db: sqlite3.Connection, sources: Sequence[Source], query: AggregateQuery
) -> Counter[int]:
    """Counts by local minute, hour or day: SQL counts the slots that no change of time parts."""
    field = str(query.group_by_time)
    spans = {n for source in sources for n in _spans(db, source.stream.ordinals[field])}
    clock = Clock(str(query.granularity), _zone(query.time_zone), spans)
    zero = FIRST // clock.slot * clock.slot  # SQLite divides towards 0: nothing lies below
    slot = f"(v.value - ({zero})) / {clock.slot}"
    columns = f"{slot} * {clock.slot} + ({zero}), count(*)"
    counted: Counter[int] = Counter()
    for source in sources:
        rows = db.execute(*source.cells(field, columns, f"GROUP BY {slot}"))
        counted.update(clock.count(rows))
    return counted


def _spans(db: sqlite3.Connection, ordinal: int) -> Iterator[int]:
    """The numbers of the spans in which a field has times; gaps cost nothing."""
    span = FIRST // SPAN
    while True:
        at = _scalar(
            db,
            "SELECT min(value) FROM cell WHERE ordinal = ? AND value >= ?",
            (ordinal, span * SPAN),
        )
        if at is None:
            return
        yield at // SPAN
        span = at // SPAN + 1


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _invalid(
            "time_zone is not a known IANA zone. Use one like Europe/Berlin or UTC.", "time_zone"
        ) from error
