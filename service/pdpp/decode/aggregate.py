"""The aggregation body -> `Buckets`."""

from typing import Any

from evidence.model import Buckets, Group
from service.pdpp.decode import number_of, rows, text_of, warnings_of


def read(body: dict[str, Any], *, stream: str = "", metric: str = "") -> Buckets:
    """The figure or the groups of a body; `stream` and `metric` if it does not repeat its own."""
    inner = body.get("data")
    aggregation = inner if body.get("object") != "aggregation" and isinstance(inner, dict) else body
    groups = tuple(
        Group(row.get("key"), number_of(row, "count")) for row in rows(aggregation, "groups")
    )
    return Buckets(
        stream=text_of(aggregation, "stream") or stream,
        metric=text_of(aggregation, "metric") or metric,
        field=text_of(aggregation, "field"),
        value=aggregation.get("value"),
        groups=groups if isinstance(aggregation.get("groups"), list) else None,
        group_by=text_of(aggregation, "group_by"),
        group_by_time=text_of(aggregation, "group_by_time"),
        granularity=text_of(aggregation, "granularity"),
        time_zone=text_of(aggregation, "effective_time_zone", "time_zone"),
        approximate=aggregation.get("approximate") is True,
        filtered_record_count=number_of(aggregation, "filtered_record_count"),
        limit=number_of(aggregation, "limit"),
        other_count=number_of(aggregation, "other_count"),
        group_count=number_of(aggregation, "group_count"),
        next_cursor=text_of(aggregation, "next_cursor"),
        warnings=warnings_of(body),
    )
