"""The aggregation body -> `Buckets`."""

from typing import Any

from evidence.model import Buckets, Group
from service.pdpp.decode import number_of, rows, text_of, warnings_of


def read(body: dict[str, Any], *, stream: str = "", metric: str = "") -> Buckets:
    """The figure or the groups of a body; `stream` and `metric` if it does not repeat its own."""
    inner = body.get("data")
    found = inner if body.get("object") != "aggregation" and isinstance(inner, dict) else body
    groups = tuple(Group(row.get("key"), number_of(row, "count")) for row in rows(found, "groups"))
    return Buckets(
        stream=text_of(found, "stream") or stream,
        metric=text_of(found, "metric") or metric,
        field=text_of(found, "field"),
        value=found.get("value"),
        groups=groups if isinstance(found.get("groups"), list) else None,
        group_by=text_of(found, "group_by"),
        group_by_time=text_of(found, "group_by_time"),
        granularity=text_of(found, "granularity"),
        time_zone=text_of(found, "effective_time_zone", "time_zone"),
        approximate=found.get("approximate") is True,
        filtered_record_count=number_of(found, "filtered_record_count"),
        limit=number_of(found, "limit"),
        other_count=number_of(found, "other_count"),
        group_count=number_of(found, "group_count"),
        next_cursor=text_of(found, "next_cursor"),
        warnings=warnings_of(body),
    )
