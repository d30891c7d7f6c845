"""The aggregation envelope -> `Buckets`."""

from typing import Any

from evidence.envelope import Envelope
from evidence.model import Buckets
from service.pdpp.decode import number_of, rows, text_of, warnings_of


def read(envelope: Envelope, *, args: dict[str, Any]) -> Buckets:
    """The figure or the groups an upstream answered `aggregate` with."""
    body = envelope.body
    inner = body.get("data")
    if body.get("object") != "aggregation" and isinstance(inner, dict):
        body = inner
    grouped = isinstance(body.get("groups"), list)
    return Buckets(
        args=args,
        stream=text_of(body, "stream") or str(args.get("stream", "")),
        metric=text_of(body, "metric") or str(args.get("metric", "")),
        field=text_of(body, "field"),
        value=body.get("value"),
        groups=rows(body, "groups") if grouped else None,
        group_by=text_of(body, "group_by", "group_by_time"),
        granularity=text_of(body, "granularity"),
        time_zone=text_of(body, "effective_time_zone", "time_zone"),
        other_count=number_of(body, "other_count"),
        group_count=number_of(body, "group_count"),
        next_cursor=text_of(body, "next_cursor"),
        filtered_record_count=number_of(body, "filtered_record_count"),
        warnings=warnings_of(envelope.body),
        envelope=body,
    )
