"""Counts, sums, extremes and groups over the declared scalar fields of a stream."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from service.upstreams.ports import AggregateQuery
from service.upstreams.store import documents, records
from service.upstreams.store.filters import Condition, compile_filter
from service.upstreams.store.visible import StreamView, View, limits

GRANULARITIES = ("minute", "hour", "day", "week", "month", "quarter", "year")
MICROSECONDS = 1_000_000
# Sums of decimal fractions are rounded here, far below what they are given with.
DECIMALS = 9
LARGEST = 2**63 - 1
# Every offset of a time zone from UTC is a multiple of this, so buckets of it never straddle two.
QUARTER_HOUR = 15 * 60 * MICROSECONDS
MINUTE = 60 * MICROSECONDS


@dataclass(frozen=True, slots=True)
class Source:
    """The records of one stream that count, as SQL over `record r`."""

    stream: StreamView
    condition: Condition

    def rows(self, columns: str, tail: str = "", *, joined: str | None = None) -> tuple[str, Any]:
        values = [self.stream.id, *self.condition.values]
        join = ""
        if joined is not None:
            join = "JOIN cell v ON v.seq = r.seq AND v.ordinal = ?"
            values.insert(0, self.stream.ordinals[joined])
        sql = (
            f"SELECT {columns} FROM record r {join} "
            f"WHERE r.stream = ? AND r.deleted = 0 AND {self.condition.sql()} {tail}"
        )
        return sql, values


def aggregate(db: sqlite3.Connection, view: View, query: AggregateQuery) -> dict[str, Any]:
    """One figure or its groups over all granted connections of a stream, merged."""
    streams = view.stream(query.stream, query.connection_id)
    for name in ("field", "group_by", "group_by_time"):
        if field := getattr(query, name):
            records.require_shared(view, streams, [field], name)
    records.require_shared(view, streams, query.filter, "filter")
    _check(streams, query)
    sources = [Source(stream, _condition(db, stream, query)) for stream in streams]
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
        "filtered_record_count": sum(_scalar(db, *s.rows("count(*)")) or 0 for s in sources),
    }
    if query.group_by or query.group_by_time:
        body.update(_groups(db, sources, query))
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


def _condition(db: sqlite3.Connection, stream: StreamView, query: AggregateQuery) -> Condition:
    condition = compile_filter(db, stream, query.filter)
    clause, values = limits(stream)
    condition.clauses.append(clause)
    condition.values += values
    return condition


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
            rows = db.execute(*source.rows("DISTINCT v.value", joined=field))
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
        return _scalar(db, *source.rows("sum(v.value)", joined=field)) or 0
    except sqlite3.OperationalError as error:
        if "integer overflow" not in str(error):
            raise
        return float(_scalar(db, *source.rows("total(v.value)", joined=field)))


def _extreme(db: sqlite3.Connection, sources: Sequence[Source], metric: str, field: str) -> Any:
    """The least or greatest value as the record spells it, None where there is none."""
    order = "ASC" if metric == "min" else "DESC"
    best = []
    for source in sources:
        sql, values = source.rows(
            "v.value, r.seq", f"ORDER BY v.value {order} LIMIT 1", joined=field
        )
        best += db.execute(sql, values).fetchall()
    if not best:
        return None
    _, seq = (min if metric == "min" else max)(best)
    return documents.load(db, [seq])[seq].data.get(field)


def _groups(
    db: sqlite3.Connection, sources: Sequence[Source], query: AggregateQuery
) -> dict[str, Any]:
    if query.group_by:
        counted = _by_value(db, sources, query.group_by)
        ordered = sorted(counted.items(), key=lambda item: (-item[1], str(item[0])))
    else:
        ordered = sorted(_by_time(db, sources, query).items())
    limit = query.limit or CONTRACT.groups_default
    shown = [{"key": key, "count": count} for key, count in ordered[:limit]]
    return {
        "groups": shown,
        "limit": limit,
        "other_count": sum(count for _, count in ordered[limit:]),
        "group_count": len(ordered),
    }


def _by_value(db: sqlite3.Connection, sources: Sequence[Source], field: str) -> Counter[Any]:
    counted: Counter[Any] = Counter()
    for source in sources:
        boolean = source.stream.manifest.fields[field].type == "boolean"
        sql, values = source.rows("v.value, count(*)", "GROUP BY v.value", joined=field)
        for value, count in db.execute(sql, values):
            counted[bool(value) if boolean else value] += count
    return counted


def _by_time(
    db: sqlite3.Connection, sources: Sequence[Source], query: AggregateQuery
) -> Counter[str]:
    """Counts by local time: SQL groups by the quarter hour, the zone is applied to those."""
    zone = _zone(query.time_zone)
    granularity = str(query.granularity)
    step = MINUTE if granularity == "minute" else QUARTER_HOUR
    counted: Counter[str] = Counter()
    for source in sources:
        sql, values = source.rows(
            f"(v.value - (v.value % {step} + {step}) % {step}) AS slot, count(*)",
            "GROUP BY slot",
            joined=str(query.group_by_time),
        )
        for slot, count in db.execute(sql, values):
            counted[_bucket(slot, granularity, zone)] += count
    return counted


def _bucket(slot: int, granularity: str, zone: ZoneInfo) -> str:
    """The key of the bucket a time lies in: its first day, or day and minute for short ones."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=slot)
    try:
        local = moment.astimezone(zone)
    except OverflowError:  # the first or the last hours that can be told
        local = moment
    if granularity in ("minute", "hour"):
        local = local.replace(minute=0) if granularity == "hour" else local
        return local.strftime("%Y-%m-%dT%H:%M")
    day = local.date()
    if granularity == "week":
        day -= timedelta(days=day.weekday())
    elif granularity == "month":
        day = day.replace(day=1)
    elif granularity == "quarter":
        day = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    elif granularity == "year":
        day = day.replace(month=1, day=1)
    return day.isoformat()


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _invalid(
            "time_zone is not a known IANA zone. Use one like Europe/Berlin or UTC.", "time_zone"
        ) from error
