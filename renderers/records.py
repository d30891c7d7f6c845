"""Renders a page of records: a line with each id, the fenced JSON, and calls that read the rest.

Also renders an aggregate as text: the value, or every group of the page.
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
from renderers.rendering import name_source, quoted, shortened, size_of, value_of, warnings

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


def fit(page: RecordPage, budgets: Budgets, apply: Each = serial) -> RecordPage:
    """The page with long values as previews, with fewer records if not all fit.

    `apply` works on the records of a heavy page.
    """
    budgets = inside(page, budgets)
    items, fitting = [item.with_relations(budgets.text_bytes // 3) for item in page.records], 0
    is_heavy = sum([_chars(item) for item in items]) > rendering.HEAVY_PAGE_CHARS
    entries: list[Trimmed | None] = [None] * len(items)
    late = set[int]()
    for size in PREVIEW_BYTES:
        places = [at for at, entry in enumerate(entries) if entry is None or entry.largest > size]

        def trim(position: int, size: int = size) -> Trimmed:
            return _trim(items[position], size, budgets)

        def without_fields(position: int) -> Trimmed:
            """The record without its fields, and the call that fetches them."""
            item = items[position]
            return Trimmed(replace(item, data={}, partial=[], left_out=[*item.data]), 0)

        if is_heavy and places:
            trimmed, missed = rendering.rendered_each(trim, places, apply, late=without_fields)
            late.update(places[position] for position in missed)
        else:
            trimmed = list(map(trim, checked(places, "shortening records")))
        for position, entry in zip(places, trimmed):
            entries[position] = entry
        fitting = _how_many([entry for entry in entries if entry], budgets)
        if fitting == len(items):
            break
    records = [entry.item for entry in entries[: max(1, fitting)] if entry]
    count = sum(position < len(records) for position in late)
    warnings = [*page.warnings, rendering.late_warning(count)] if count else page.warnings
    return replace(page, records=records, warnings=warnings)


def inside(page: RecordPage, budgets: Budgets) -> Budgets:
    """The limits without the most bytes that a page's head, warnings and calls can have."""
    cursor = page.next_cursor or "c" * CURSOR_BYTES
    both = [page, replace(page, next_cursor=cursor, has_more=True, ended_early=True)]
    sizes = list[tuple[int, int]]()
    for variant in both:
        calls = variant.continuations()
        empty = replace(variant, records=[])
        lines = [_header(empty, 10**6), *footer(empty, calls, Context())]
        text_bytes = sum(len(line.encode()) + 1 for line in lines)
        sizes.append((text_bytes, len(orjson.dumps(wire.records(empty, calls)))))
    return replace(
        budgets,
        text_bytes=budgets.text_bytes - max(text for text, _ in sizes),
        structured_bytes=budgets.structured_bytes - max(data for _, data in sizes),
    )


def _chars(item: Record) -> int:
    """The approximate size of a record's values."""
    values = item.data.values()
    texts = [field for field in values if isinstance(field, str | dict | list)]
    return sum([len(field if isinstance(field, str) else orjson.dumps(field)) for field in texts])


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
        f"  {value_of(content.field_path)} {size_of(content)}: {context.blob(content)}"
        for content in item.bytes
    ]
    if item.left_out and (rest := item.rest):
        lines.append(f"  more fields: {len(item.left_out)}; {context.step(rest)}")
    if item.expanded:
        lines += [f"  {context.step(call)}" for call in item.related]
    return lines


def footer(page: RecordPage, calls: Sequence[Continuation], context: Context) -> list[str]:
    """Warnings and next calls."""
    lines = warnings(page)
    if page.ended_early:
        lines.append(
            "The page ended early to stay within its size limit; use next_page for the rest."
        )
    lines += [context.step(call) for call in calls]
    if not page.records:
        lines.append("No records found. Check the filter, or call schema to list the streams.")
    return lines


def _how_many(records: Sequence[Trimmed], budgets: Budgets) -> int:
    text, data = budgets.text_bytes, budgets.structured_bytes
    for number, trimmed in enumerate(records):
        if trimmed.cost is None:
            trimmed.cost = _cost(trimmed.item)
        text -= trimmed.cost[0]
        data -= trimmed.cost[1]
        if text < 0 or data < 0:
            return number
    return len(records)


def _cost(item: Record) -> tuple[int, int]:
    """Bytes of a record's lines and of its JSON."""
    data = len(orjson.dumps([item.entry, item.rung]))
    lines = [item.payload[0], line(1, item), *reads(item)]
    return sum([len(line.encode()) + 1 for line in lines]) + 60, data


def _trim(item: Record, size: int, budgets: Budgets) -> Trimmed:
    """The record with values over `size` bytes as previews, and only the fields that can fit."""
    data: dict[str, Any] = {}
    partial: list[Partial] = []
    omitted: list[str] = []
    related = sum(len(orjson.dumps([call.as_json])) + 20 for call in item.related)
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
            omitted.append(name)
            continue
        data[name] = value
        if part:
            partial.append(part)
    if not partial and not omitted:
        return Trimmed(item, largest)
    return Trimmed(replace(item, data=data, partial=partial, left_out=omitted), largest)


def _json_bytes(name: str, content: Any) -> int:
    return len(orjson.dumps({name: content}))


def _preview(
    item: Record, name: str, value: Any, size: int
) -> tuple[Any, int | None, int | None, int, int]:
    """(the shown part of a value, its end and total, the size below which it is cut shorter, the
    size of the shown part and of the calls that return its bytes). The end is None for a value that
    is shown whole, the total is None for bytes.
    """
    end, total, whole = None, None, 0
    visible = item.shown[name]
    if isinstance(value, values.Base64):
        end = 0
    elif isinstance(value, Preview):
        whole, total = len(orjson.dumps(value.text)) - 2, value.size_chars
        value = Preview(fit_json(value.text, size), total, value.type)
        end, visible = len(value.text), values.as_json(value, item.ref, name)
    elif isinstance(visible, (str, dict, list)) and not isinstance(value, values.BlobRef):
        text = visible if isinstance(visible, str) else values.text_of(visible)
        whole = len(orjson.dumps(text)) - PREVIEW_COST
        if whole > size:
            value = Preview(fit_json(text, size), len(text), pointer.json_type(value))
            end, total, visible = len(value.text), len(text), values.as_json(value, item.ref, name)
    cost = _json_bytes(name, visible)
    if visible is not value:
        for content in values.bytes_of(value, item.ref, name):
            cost += len(wire.bytes_line(content).encode()) + PARTIAL_BYTES
    return value, end, total, whole, cost


def _partial(item: Record, path: str, end: int, total: int | None) -> Partial:
    goes_on = total is not None and 0 < end < total
    window = {"offset_chars": end, "limit_chars": CONTRACT.window_chars} if goes_on else {}
    return Partial(path, end, total, window_read(item.id, path, window))


def fit_groups(buckets: Buckets, budgets: Budgets, apply: Each = serial) -> Buckets:
    """The aggregate with as many of its groups as fit into a tool result."""
    return shortened(buckets, "groups", render_groups, budgets)


def render_groups(buckets: Buckets, context: Context) -> Rendering:
    """Both channels of an aggregate."""
    lines = [
        _groups_header(buckets),
        *(_group_line(group, buckets.metric) for group in buckets.groups or ()),
        *groups_footer(buckets, context),
    ]
    return context.rendering(lines, wire.aggregate(buckets))


def _group_line(group: Group, metric: str) -> str:
    if metric == "count":
        return f"{group_key(group.key)} {group.count}"
    return f"{group_key(group.key)} {group_value(group.value)} records={group_key(group.count)}"


def groups_footer(buckets: Buckets, context: Context = Context()) -> list[str]:
    """The number of records outside the groups, warnings, and the call for further groups."""
    lines = []
    if buckets.other_count:
        lines.append(
            f"other_count={buckets.other_count}: the number of records in the groups after these."
        )
    lines += warnings(buckets)
    if buckets.ended_early:
        goes_on = (
            "use next_page for the rest"
            if buckets.next_cursor
            else "the groups after these are left out"
        )
        lines.append(f"The page ended early to stay within its size limit; {goes_on}.")
    return lines + [context.step(continuation) for continuation in buckets.continuations()]


def _groups_header(buckets: Buckets) -> str:
    value = None if buckets.groups is not None else group_key(buckets.value)
    line = header(
        "aggregate",
        metric=buckets.metric,
        stream=buckets.stream,
        **members(buckets, "field", "group_by", "group_by_time", "granularity", "time_zone"),
        groups=len(buckets.groups) if buckets.groups is not None else None,
        of=buckets.group_count,
        records=buckets.filtered_record_count,
    )
    return f"{line} value={value}" if value is not None else line


def group_value(figure: Any) -> str:
    """The figure of a group: numbers as they are, also decimals, null by name."""
    return "null" if figure is None else value_of(figure)


def group_key(key: Any) -> str:
    """A group's key or a value: numbers as they are, text quoted, null by name."""
    if key is None:
        return "null"
    if isinstance(key, str):
        return quoted(key) if escape(key)[1] or not key.isalnum() else value_of(key)
    return value_of(key)
