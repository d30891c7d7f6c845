"""An aggregate as text: the number, or every group of the page."""

from typing import Any

from evidence import wire
from evidence.limits import Budgets
from evidence.model import Buckets, Group, members
from evidence.text import escape
from evidence.work import Each, serial
from renderers.rendering import Context, Rendering, header, quoted, shortened, value_of
from renderers.rendering import warning


def fit(found: Buckets, budgets: Budgets, each: Each = serial) -> Buckets:
    """The aggregate with as many of its groups as fit a tool result."""
    return shortened(found, "groups", render, budgets)


def render(found: Buckets, context: Context) -> Rendering:
    """Both channels of an aggregate."""
    lines = [_header(found), *map(_line, found.groups or ()), *footer(found, context)]
    return context.rendering(lines, wire.aggregate(found))


def _line(group: Group) -> str:
    return f"{key(group.key)} {group.count}"


def footer(found: Buckets, context: Context = Context()) -> list[str]:
    """The records left out of the groups, warnings, and the call for further groups."""
    lines = []
    if found.other_count:
        lines.append(f"other_count={found.other_count}: records in groups after these.")
    lines += [warning(item) for item in found.warnings]
    if found.ended_early:
        goes_on = (
            "next_page goes on" if found.next_cursor else "the groups after these are left out"
        )
        lines.append(f"The page ended early to stay within its size; {goes_on}.")
    return lines + [context.step(continuation) for continuation in found.continuations()]


def _header(found: Buckets) -> str:
    value = None if found.groups is not None else key(found.value)
    line = header(
        "aggregate",
        metric=found.metric,
        stream=found.stream,
        **members(found, "field", "group_by", "group_by_time", "granularity", "time_zone"),
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
