"""A page of records as text: a line with the id, the fenced JSON, and calls that read the rest.

Also an aggregate as text: the value, or every group of the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from evidence import pointer, values, wire
from evidence.limits import CONTRACT, Budgets
from evidence.model import Buckets, Continuation, Group, members, spelled, window_read
from evidence.records import Partial, Record, RecordPage
from evidence.text import escape
from evidence.values import Preview
from evidence.work import Each, checked, serial
from renderers import rendering
from renderers.rendering import Context, Rendering, fenced, fit_json, header
from renderers.rendering import name_source, quoted, shortened, size_of, value_of, warning

#: Bytes of the longest cursor, which a shorter page may need.
CURSOR_BYTES = 1_200
PARTIAL_BYTES = 100  # around the call that continues
PREVIEW_COST = 200  # bytes of a preview's own text and call: a cut must save more
# Sizes of previews, in bytes of JSON; the largest with which the whole page fits is used.
PREVIEW_BYTES = (8_192, 2_048, 512, 160, 80)


@dataclass(slots=True)
class Trimmed:
    """A record as shown with previews of some size.

    `largest` is the size up to which smaller previews change nothing; `cost` is the size of its
    text and JSON in bytes, once known.
    """

    item: Record
    largest: int
    cost: tuple[int, int] | None = None


def fit(page: RecordPage, budgets: Budgets, each: Each = serial) -> RecordPage:
    """The page with long values as previews, with fewer records if not all fit.

    `each` works on the records of a heavy page.
    """
    budgets = inside(page, budgets)
    items, kept = [item.with_relations(budgets.text_bytes // 3) for item in page.records], 0
    is_heavy = sum([_chars(item) for item in items]) > rendering.HEAVY_PAGE_CHARS
    shown: list[Trimmed | None] = [None] * len(items)
    late = set[int]()
    for size in PREVIEW_BYTES:
        places = [place for place, one in enumerate(shown) if one is None or one.largest > size]

        def trim(place: int, size: int = size) -> Trimmed:
            return _trim(items[place], size, budgets)

        def without_fields(place: int) -> Trimmed:
            """The record without its fields, and the call that fetches them."""
            item = items[place]
            return Trimmed(replace(item, data={}, partial=[], left_out=[*item.data]), 0)

        if is_heavy and places:
            trimmed, missed = rendering.rendered_each(trim, places, each, late=without_fields)
            late.update(places[place] for place in missed)
        else:
            trimmed = list(map(trim, checked(places, "fitting records")))
        for place, one in zip(places, trimmed):
            shown[place] = one
        kept = _how_many([one for one in shown if one], budgets)
        if kept == len(items):
            break
    records = [one.item for one in shown[: max(1, kept)] if one]
    count = sum(place < len(records) for place in late)
    warnings = [*page.warnings, rendering.late_warning(count)] if count else page.warnings
    return replace(page, records=records, warnings=warnings)


def inside(page: RecordPage, budgets: Budgets) -> Budgets:
    """The limits without the most bytes that a page's head, warnings and calls can have."""
    cursor = page.next_cursor or "c" * CURSOR_BYTES
    both = [page, replace(page, next_cursor=cursor, has_more=True, ended_early=True)]
    sizes = list[tuple[int, int]]()
    for one in both:
        calls = one.continuations()
        empty = replace(one, records=[])
        lines = [_header(empty, 10**6), *footer(empty, calls, Context())]
        sizes.append(
            (
                sum(len(line.encode()) + 1 for line in lines),
                len(orjson.dumps(wire.records(empty, calls))),
            )
        )
    return replace(
        budgets,
        text_bytes=budgets.text_bytes - max(text for text, _ in sizes),
        structured_bytes=budgets.structured_bytes - max(data for _, data in sizes),
    )


def _chars(item: Record) -> int:
    """The approximate size of a record's values."""
    values = item.data.values()
    return sum(
        [
            len(one if isinstance(one, str) else orjson.dumps(one))
            for one in values
            if isinstance(one, str | dict | list)
        ]
    )


def render(page: RecordPage, context: Context) -> Rendering:
    """Both channels of a page that `fits`."""
    calls = page.continuations()
    structured = wire.records(page, calls)
    escapes = sum([item.payload[1] for item in page.records])
    body = []
    for number, item in enumerate(page.records, start=1):
        body += [line(number, item), fenced(item.payload[0]), *reads(item, context)]
    lines = [_header(page, escapes), *body, *footer(page, calls, context)]
    return context.rendering(lines, structured)


def _header(page: RecordPage, escapes: int) -> str:
    kind, number = page.count
    exact = None if number is None else f"{kind}:{number}"
    return header(
        "query_records",
        stream=page.stream,
        records=len(page.records),
        has_more=page.has_more,
        count=exact,
        next_cursor=page.next_cursor,
        next_changes_since=page.next_changes_since,
        escaped=escapes or None,
    )


def line(number: int, item: Record) -> str:
    """A record: number, id, time, source."""
    state = " deleted=true" if item.deleted else ""
    at = f" emitted_at={value_of(item.emitted_at)}" if item.emitted_at else ""
    return f"{number} {item.id}{at} source={name_source(item.source)}{state}"


def reads(item: Record, context: Context = Context()) -> list[str]:
    """The calls that read the parts of a record that are not shown."""
    lines = []
    for part in item.partial:
        extent = "binary" if part.total is None else f"0..{part.end} of {part.total}"
        lines.append(f"  {value_of(part.field_path)} {extent} {context.spell(part.read)}")
    lines += [
        f"  {value_of(one.field_path)} {size_of(one)}: {context.blob(one)}" for one in item.bytes
    ]
    if item.left_out and (rest := item.rest):
        lines.append(f"  {len(item.left_out)} more fields; {context.step(rest)}")
    if item.expanded:
        lines += [f"  {context.step(one)}" for one in item.related]
    return lines


def footer(page: RecordPage, calls: Sequence[Continuation], context: Context) -> list[str]:
    """Warnings and next calls."""
    lines = [warning(notice) for notice in page.warnings]
    if page.ended_early:
        lines.append("The page ended early to stay within its size; next_page continues.")
    lines += [context.step(call) for call in calls]
    if not page.records:
        lines.append("No records here. Check the filter, or call schema for the streams.")
    return lines


def _how_many(shown: Sequence[Trimmed], budgets: Budgets) -> int:
    text, data = budgets.text_bytes, budgets.structured_bytes
    for number, one in enumerate(shown):
        if one.cost is None:
            one.cost = _cost(one.item)
        text -= one.cost[0]
        data -= one.cost[1]
        if text < 0 or data < 0:
            return number
    return len(shown)


def _cost(item: Record) -> tuple[int, int]:
    """Bytes of a record's lines and of its JSON."""
    data = len(orjson.dumps([item.entry, item.rung]))
    lines = [item.payload[0], line(1, item), *reads(item)]
    return sum([len(line.encode()) + 1 for line in lines]) + 60, data


def _trim(item: Record, size: int, budgets: Budgets) -> Trimmed:
    """The record with values over `size` bytes as previews, and only the fields that can fit."""
    data: dict[str, Any] = {}
    partial: list[Partial] = []
    left_out: list[str] = []
    related = sum(len(orjson.dumps([one.as_json])) + 20 for one in item.related)
    related += len(orjson.dumps(item.relations))
    room, largest = (budgets.text_bytes - related) // 2, 0
    for name, value in item.data.items():
        part = None
        if isinstance(value, str | int | float) or value is None:
            cost = _json_bytes(name, value)
            whole = cost - PREVIEW_COST  # a little more than the value alone
        else:
            whole = size + 1
        if whole > size:
            value, end, total, whole, cost = _preview(item, name, value, size)
            if end is not None:
                part = _partial(item, pointer.path_of(name), end, total)
                cost += len(spelled(part.read).encode()) + PARTIAL_BYTES
        largest = max(largest, whole)
        room -= cost
        if room < 0 and data:
            left_out.append(name)
            continue
        data[name] = value
        if part:
            partial.append(part)
    if not partial and not left_out:
        return Trimmed(item, largest)
    return Trimmed(replace(item, data=data, partial=partial, left_out=left_out), largest)


def _json_bytes(name: str, shown: Any) -> int:
    return len(orjson.dumps({name: shown}))


def _preview(
    item: Record, name: str, value: Any, size: int
) -> tuple[Any, int | None, int | None, int, int]:
    """(the shown part of a value, its end and total, the size below which it is cut shorter, the
    size of the shown part and of the calls that return its bytes). The end is None for a value that
    is shown whole, the total is None for bytes.
    """
    end, total, whole = None, None, 0
    shown = item.shown[name]
    if isinstance(value, values.Base64):
        end = 0
    elif isinstance(value, Preview):
        whole, total = len(orjson.dumps(value.text)) - 2, value.size_chars
        value = Preview(fit_json(value.text, size), total, value.type)
        end, shown = len(value.text), values.as_json(value, item.ref, name)
    elif isinstance(shown, (str, dict, list)) and not isinstance(value, values.BlobRef):
        text = shown if isinstance(shown, str) else values.text_of(shown)
        whole = len(orjson.dumps(text)) - PREVIEW_COST
        if whole > size:
            value = Preview(fit_json(text, size), len(text), pointer.json_type(value))
            end, total, shown = len(value.text), len(text), values.as_json(value, item.ref, name)
    cost = _json_bytes(name, shown)
    if shown is not value:
        for one in values.bytes_of(value, item.ref, name):
            cost += len(wire.bytes_line(one).encode()) + PARTIAL_BYTES
    return value, end, total, whole, cost


def _partial(item: Record, path: str, end: int, total: int | None) -> Partial:
    goes_on = total is not None and 0 < end < total
    window = {"offset_chars": end, "limit_chars": CONTRACT.window_chars} if goes_on else {}
    return Partial(path, end, total, window_read(item.id, path, window))


def fit_groups(found: Buckets, budgets: Budgets, each: Each = serial) -> Buckets:
    """The aggregate with as many of its groups as fit into a tool result."""
    return shortened(found, "groups", render_groups, budgets)


def render_groups(found: Buckets, context: Context) -> Rendering:
    """Both channels of an aggregate."""
    lines = [
        _groups_header(found),
        *(_group_line(group, found.metric) for group in found.groups or ()),
        *groups_footer(found, context),
    ]
    return context.rendering(lines, wire.aggregate(found))


def _group_line(group: Group, metric: str) -> str:
    if metric == "count":
        return f"{group_key(group.key)} {group.count}"
    return f"{group_key(group.key)} {group_value(group.value)} records={group_key(group.count)}"


def groups_footer(found: Buckets, context: Context = Context()) -> list[str]:
    """The number of records outside the groups, warnings, and the call for further groups."""
    lines = []
    if found.other_count:
        lines.append(f"other_count={found.other_count}: records in groups after these.")
    lines += [warning(item) for item in found.warnings]
    if found.ended_early:
        goes_on = (
            "next_page continues" if found.next_cursor else "the groups after these are left out"
        )
        lines.append(f"The page ended early to stay within its size; {goes_on}.")
    return lines + [context.step(continuation) for continuation in found.continuations()]


def _groups_header(found: Buckets) -> str:
    value = None if found.groups is not None else group_key(found.value)
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


def group_value(found: Any) -> str:
    """The figure of a group: numbers as they are, also decimals, null by name."""
    return "null" if found is None else value_of(found)


def group_key(found: Any) -> str:
    """A group's key or a value: numbers as they are, text quoted, null by name."""
    if found is None:
        return "null"
    if isinstance(found, str):
        return quoted(found) if escape(found)[1] or not found.isalnum() else value_of(found)
    return value_of(found)
