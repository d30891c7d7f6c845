"""The aggregation body -> `Buckets`."""

from typing import Any

from evidence.model import Buckets, Group
from service.pdpp.decode import number_of, rows, text_of, warnings_of


def read(body: dict[str, Any], *, stream: str = "", metric: str = "") -> Buckets:
    """The figure or the groups of a body; `stream` and `metric` if it does not repeat its own."""
    inner = body.get("data")
    figure = inner if body.get("object") != "aggregation" and isinstance(inner, dict) else body
    groups = tuple(Group(row.get("key"), number_of(row, "count")) for row in rows(figure, "groups"))
    return Buckets(
        stream=text_of(figure, "stream") or stream,
        metric=text_of(figure, "metric") or metric,
        field=text_of(figure, "field"),
        value=figure.get("value"),
        groups=groups if isinstance(figure.get("groups"), list) else None,
        group_by=text_of(figure, "group_by"),
        group_by_time=text_of(figure, "group_by_time"),
        granularity=text_of(figure, "granularity"),
        time_zone=text_of(figure, "effective_time_zone", "time_zone"),
        approximate=figure.get("approximate") is True,
        filtered_record_count=number_of(figure, "filtered_record_count"),
        limit=number_of(figure, "limit"),
        other_count=number_of(figure, "other_count"),
        group_count=number_of(figure, "group_count"),
        next_cursor=text_of(figure, "next_cursor"),
        warnings=warnings_of(body),
    )
