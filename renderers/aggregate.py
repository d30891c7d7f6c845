"""An aggregate as text: the number, or every group of the page."""

from typing import Any

from evidence import wire
from evidence.model import Buckets
from evidence.text import escape
from renderers.lines import header, joined, quoted, value_of, warning
from renderers.rendering import Context, Rendering


def render(found: Buckets, context: Context) -> Rendering:
    """Both channels of an aggregate."""
    lines = [_header(found)]
    for group in found.groups or ():
        lines.append(f"{key(group.get('key'))} {group.get('count')}")
    return Rendering((joined([*lines, *footer(found)]),), wire.aggregate(found))


def footer(found: Buckets) -> list[str]:
    """What the groups leave out, and warnings."""
    lines = []
    if found.other_count:
        lines.append(
            f"other_count={found.other_count}: records in groups beyond the limit; "
            "raise limit (100 at most) or narrow with filter."
        )
    return lines + [warning(item) for item in found.warnings]


def _header(found: Buckets) -> str:
    value = None if found.groups is not None else key(found.value)
    line = header(
        "aggregate",
        metric=found.metric,
        stream=found.stream,
        field=found.field,
        group_by=None if found.granularity else found.group_by,
        group_by_time=found.group_by if found.granularity else None,
        granularity=found.granularity,
        time_zone=found.time_zone,
        groups=len(found.groups) if found.groups is not None else None,
        of=found.group_count,
        records=found.filtered_record_count,
    )
    return f"{line} value={value}" if value is not None else line


def key(key: Any) -> str:
    """A group's key or a value: numbers as they are, text quoted, null by name."""
    if key is None:
        return "null"
    if isinstance(key, str):
        return quoted(key) if escape(key)[1] or not key.isalnum() else value_of(key)
    return value_of(key)
