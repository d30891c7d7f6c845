"""A page of records as text: an id line each, the payload as JSON in a fence, reads of the rest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from evidence import binary, pointer, wire
from evidence.continuation import Continuation
from evidence.limits import CONTRACT, Budgets
from evidence.binary import Bytes
from evidence.model import READ_FIELD, Partial, RecordItem, RecordPage
from evidence.size import fit_json, json_bytes
from evidence.text import escape
from renderers.lines import fenced, header, joined, name_source, size_of, value_of, warning
from renderers.rendering import FENCE_SLOT, Context, Rendering

PAGE_BYTES = 1_600
PARTIAL_BYTES = 100  # what stands around the call that reads on
PREVIEW_COST = 200  # bytes of a preview's own words and call: a cut must save more
# Sizes of previews, in bytes of JSON; the largest that lets the whole page fit is taken.
PREVIEW_BYTES = (8_192, 2_048, 512, 160, 80)
KINDS: dict[type, str] = {str: "string", dict: "object", list: "array"}


@dataclass(slots=True)
class Trimmed:
    """A record as it is shown with previews of some size.

    `largest` is the size up to which smaller previews change nothing; `cost` the bytes of its text
    and its JSON, once they are known.
    """

    item: RecordItem
    largest: int
    cost: tuple[int, int] | None = None


def fits(page: RecordPage, budgets: Budgets) -> int:
    """How many records can be shown; cuts long values to previews with their read."""
    items, kept = page.records, 0
    shown = [_trim(item, PREVIEW_BYTES[0], budgets) for item in items]
    for size in PREVIEW_BYTES:
        for number, (item, known) in enumerate(zip(items, shown)):
            if known.largest > size:
                shown[number] = _trim(item, size, budgets)
        kept = _how_many(shown, budgets)
        if kept == len(items):
            break
    if kept == len(items) or len(items) == 1:
        page.records = [one.item for one in shown]
    return max(min(1, len(items)), kept)


def render(page: RecordPage, context: Context) -> Rendering:
    """Both channels of a page that `fits`."""
    structured = wire.records(page)
    body, escapes = [], 0
    for number, item in enumerate(page.records, start=1):
        shown, count = escape(_payload(item))
        escapes += count
        body += [line(number, item), fenced(FENCE_SLOT, shown), *reads(item, context)]
    text = joined([_header(page, escapes), *body, *footer(page, context)])
    return Rendering((context.close(text),), structured)


def _header(page: RecordPage, escapes: int) -> str:
    count = page.count
    exact = f"{count.get('kind')}:{count.get('value')}" if "value" in count else None
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


def line(number: int, item: RecordItem) -> str:
    """A record: number, id, time, source."""
    state = " deleted=true" if item.deleted else ""
    at = f" emitted_at={value_of(item.emitted_at)}" if item.emitted_at else ""
    return f"{number} {item.id}{at} source={name_source(item.source)}{state}"


def _payload(item: RecordItem) -> str:
    shown = dict(item.data)
    if "expanded" in item.envelope:
        shown["expanded"] = item.envelope["expanded"]
    return orjson.dumps(shown).decode()


def reads(item: RecordItem, context: Context = Context()) -> list[str]:
    """The calls that read what a record is shown without."""
    lines = [
        f"  {value_of(part.field_path)} {_extent(part)} {context.spell(part.read)}"
        for part in item.partial
    ]
    lines += [
        f"  {value_of(one.field_path)} {size_of(one)}: {context.blob(one)}" for one in item.bytes
    ]
    if rest := item.rest():
        lines.append(f"  {len(item.left_out)} more fields; {context.step(rest)}")
    lines += [f"  {context.step(one)}" for one in item.related]
    return lines


def _extent(part: Partial) -> str:
    return "binary" if part.total is None else f"0..{part.end} of {part.total}"


def footer(page: RecordPage, context: Context) -> list[str]:
    """Warnings, and what comes next."""
    lines = [warning(found) for found in page.warnings]
    if page.ended_early:
        lines.append("The page ended early to stay within its size; next_page goes on.")
    lines += [context.step(continuation) for continuation in page.continuations()]
    if not page.records:
        lines.append("No records here. Check the filter, or call schema for the streams.")
    return lines


def _how_many(shown: Sequence[Trimmed], budgets: Budgets) -> int:
    text, data = budgets.text_bytes - PAGE_BYTES, budgets.structured_bytes - PAGE_BYTES
    for number, one in enumerate(shown):
        if one.cost is None:
            one.cost = _cost(one.item)
        text -= one.cost[0]
        data -= one.cost[1]
        if text < 0 or data < 0:
            return number
    return len(shown)


def _cost(item: RecordItem) -> tuple[int, int]:
    """Bytes of a record's lines and of its JSON."""
    lines = [line(1, item), *reads(item), escape(_payload(item))[0]]
    text = sum([len(line.encode()) + 1 for line in lines]) + 60
    return text, len(orjson.dumps([wire.record(item), wire.record_rung(item)]))


def _trim(item: RecordItem, size: int, budgets: Budgets) -> Trimmed:
    """The record with values over `size` bytes as previews, and fields that fit at all."""
    data: dict[str, Any] = {}
    partial: list[Partial] = []
    left_out: list[str] = []
    held: list[Bytes] = []
    room, largest = budgets.text_bytes // 2, 0
    for name, value in item.data.items():
        part, cost = None, len(orjson.dumps({name: value}))
        whole = cost - PREVIEW_COST  # a little more than the value alone
        if whole > size or not _is_plain(value):
            value, part, whole = _preview(item, name, value, size)
            cost = len(orjson.dumps({name: value}))
            cost += len(wire.spelled(part.read).encode()) + PARTIAL_BYTES if part else 0
        found = binary.bytes_of(value, item.ref, pointer.path_of(name))
        cost += sum(len(wire.bytes_line(one).encode()) + PARTIAL_BYTES for one in found)
        largest = max(largest, whole)
        room -= cost
        if room < 0 and data:
            left_out.append(name)
            continue
        data[name] = value
        held += found
        if part:
            partial.append(part)
    if not partial and not left_out:
        return Trimmed(item, largest)
    shown = replace(item, data=data, partial=partial, left_out=left_out, bytes=held)
    return Trimmed(shown, largest)


def _is_plain(value: Any) -> bool:
    """Whether a value is text, a number, a boolean or null, shown as it is where there is room."""
    return not isinstance(value, (dict, list))


def _preview(item: RecordItem, name: str, value: Any, size: int) -> tuple[Any, Partial | None, int]:
    """(what is shown of a value, how to read the rest, the size below which it is cut shorter)."""
    kind = value.get("object") if isinstance(value, dict) else None
    if binary.is_described(value):
        return value, _partial(item, name, 0, None), 0
    if kind == "field_preview" and isinstance(value.get("size_chars"), int):
        text, total = str(value.get("preview_text", "")), int(value["size_chars"])
        cut = fit_json(text, size)
        return *_field_preview(item, name, cut, total, value.get("type")), json_bytes(text)
    if not isinstance(value, (str, dict, list)) or binary.is_reference(value):
        return value, None, 0
    text = value if isinstance(value, str) else _canonical(value)
    whole = json_bytes(text) + 2 - PREVIEW_COST
    if whole <= size:
        return value, None, whole
    cut = fit_json(text, size)
    return *_field_preview(item, name, cut, len(text), KINDS[type(value)]), whole


def _field_preview(
    item: RecordItem, name: str, text: str, total: int, kind: Any
) -> tuple[dict[str, Any], Partial]:
    shown = {"object": "field_preview", "preview_text": text, "size_chars": total, "type": kind}
    return shown, _partial(item, name, len(text), total)


def _partial(item: RecordItem, name: str, end: int, total: int | None) -> Partial:
    path = pointer.path_of(name)
    args: dict[str, Any] = {"id": item.id, "field_path": path}
    if total is not None and 0 < end < total:
        args["offset_chars"] = end
        args["limit_chars"] = CONTRACT.window_chars
    return Partial(path, end, total, Continuation(READ_FIELD, args, "read"))


def _canonical(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
