"""Counts, sums, averages, extremes and groups over the declared scalar fields of a stream."""

from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from evidence.model import GRANULARITIES, Buckets
from service.keys import Sealer, identity
from service.ports import AggregateQuery
from service.records.view import near_values
from service.records.view.choices import count, require_shared
from service.records.engine import Snapshot
from service.records.view.filters import tests_of
from service.records.reading.groups import Source, by_time, by_value, figures
from service.records.view import View
from service.records.view.streams import StreamView


def aggregate(snapshot: Snapshot, view: View, query: AggregateQuery, sealer: Sealer) -> Buckets:
    """One value, or its groups, merged over all granted connections of a stream."""
    streams = view.stream(query.stream, query.connection_id)
    for name in ("field", "group_by", "group_by_time"):
        if field := getattr(query, name):
            require_shared(view, streams, [field], name)
    require_shared(view, streams, query.filter, "filter")
    _check(streams, query)
    sources = [Source(entry, entry.selection(tests_of(entry, query.filter))) for entry in streams]
    total = count(snapshot, [source.selection for source in sources])
    buckets = Buckets(
        stream=query.stream,
        metric=query.metric,
        field=query.field,
        group_by=query.group_by,
        group_by_time=query.group_by_time,
        granularity=query.granularity,
        time_zone=(query.time_zone or "UTC") if query.group_by_time else None,
        filtered_record_count=total,
        warnings=[] if total else near_values.warnings(snapshot, streams, query.filter),
    )
    if query.group_by or query.group_by_time:
        return _grouped(buckets, snapshot, sources, query, sealer, view.grant.grant_id)
    value = total if query.metric == "count" else figures(snapshot, [sources], query)[0]
    return replace(buckets, value=value)


def _check(streams: Sequence[StreamView], query: AggregateQuery) -> None:
    """Refuses invalid combinations, then ungranted fields, then undeclared ones."""
    grouped = query.group_by or query.group_by_time
    if query.group_by and query.group_by_time:
        raise _invalid("Use group_by or group_by_time, not both.", "group_by")
    if query.metric == "count" and query.field is not None:
        raise _invalid(
            "metric='count' counts records and does not use a field. Leave out `field`.", "field"
        )
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
    uses = ((query.field, query.metric), (query.group_by, "group_by"))
    for field, kind in (*uses, (query.group_by_time, "group_by_time")):
        for stream in streams if field else ():
            _declared(stream, str(field), kind)


def _declared(stream: StreamView, field: str, kind: str) -> None:
    param = kind if kind in ("group_by", "group_by_time") else "field"
    path = stream.path(field, param=param)
    allowed = stream.manifest.aggregations.get("sum" if kind == "avg" else kind, ())
    if path not in allowed or path not in stream.ordinals:
        usable = ", ".join(name for name in allowed if name in stream.ordinals) or "none"
        raise InvalidRequest(
            f"The stream {stream.name!r} does not support {kind} for {field!r}. Supported "
            f"fields: {usable}.",
            param=param,
        )


def _invalid(message: str, param: str) -> InvalidRequest:
    return InvalidRequest(message, param=param)


def _grouped(
    buckets: Buckets,
    snapshot: Snapshot,
    sources: Sequence[Source],
    query: AggregateQuery,
    sealer: Sealer,
    grant_id: str,
) -> Buckets:
    """The answer with a page of groups. The cursor is the position of the last group."""
    limit = query.limit or CONTRACT.groups_default
    bound = identity(query, "groups", grant_id)
    after = sealer.open(query.cursor, bound=bound) if query.cursor else None
    if query.group_by:
        page = by_value(snapshot, sources, query, after, limit)
    else:
        page = by_time(snapshot, sources, query, _zone(query.time_zone), after, limit)
    return replace(
        buckets,
        groups=tuple(page.groups),
        limit=limit,
        other_count=page.other_count,
        group_count=page.group_count,
        next_cursor=sealer.seal(page.position, bound=bound) if page.other_count else None,
    )


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _invalid(
            "time_zone is not a known IANA time zone. Use one such as Europe/Berlin or UTC.",
            "time_zone",
        ) from error
