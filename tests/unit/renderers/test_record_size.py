"""What fits a page of records, by a definition that cuts every record anew for every size."""

from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given

from evidence import pointer, wire
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT, Budgets
from evidence.records import Record, RecordPage
from evidence.text import escape, json_line
from evidence.values import Base64, Preview, as_json, bytes_of, data_as_json
from renderers import records
from tests.helpers.monsters import Held, held, monstrous, record_pages


def size_of(value: Any) -> int:
    return len(orjson.dumps(value))


def beginning(text: str, size: int) -> str:
    """The longest beginning that takes `size` bytes inside JSON; by halving, for long texts."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size_of(text[:middle]) - 2 <= size else (low, middle - 1)
    return text[:low]


def shown_as(value: Any, ref: RecordRef, size: int) -> tuple[Any, int | None]:
    """(a value as it is shown, the code points shown of it: None for a whole one)."""
    if isinstance(value, Base64):
        return value, 0
    text, total, kind = value, None, "string"
    if isinstance(value, Preview):
        text, total, kind = value.text, value.size_chars, str(value.type)
    elif not isinstance(value, (str, dict, list)):
        return value, None
    elif not isinstance(value, str):
        shown = as_json(value, ref, "")
        text = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS).decode()
        kind = "object" if isinstance(value, dict) else "array"
    if total is None and size_of(text) <= size + records.PREVIEW_COST:
        return value, None
    cut = beginning(text, size)
    return Preview(cut, len(text) if total is None else total, kind), len(cut)


def trimmed(
    item: Record, size: int, budgets: Budgets
) -> tuple[dict[str, Any], list[str], list[str]]:
    """(data, the fields shown in part, the fields left out) of a record."""
    data: dict[str, Any] = {}
    partial, left_out, room = [], [], budgets.text_bytes // 2
    for name, value in item.data.items():
        shown, end = shown_as(value, item.ref, size)
        room -= size_of(data_as_json({name: shown}, item.ref))
        if end is not None:
            args: dict[str, Any] = {"id": item.id, "field_path": pointer.path_of(name)}
            if end and end < shown.size_chars:
                args |= {"offset_chars": end, "limit_chars": CONTRACT.window_chars}
            call = json_line(args)
            room -= len(f"read_record_field {call}".encode()) + records.PARTIAL_BYTES
        for one in bytes_of(shown, item.ref, name):
            room -= len(wire.bytes_line(one).encode()) + records.PARTIAL_BYTES
        if room < 0 and data:
            left_out.append(name)
            continue
        data[name] = shown
        partial += [name] if end is not None else []
    return data, partial, left_out


def what_is_shown(item: Record) -> tuple[dict[str, Any], list[str], list[str]]:
    fields = {pointer.path_of(name): name for name in item.data}
    return item.data, [fields[part.field_path] for part in item.partial], item.left_out


def cost(item: Record) -> tuple[int, int]:
    payload = escape(orjson.dumps(data_as_json(item.data, item.ref)).decode())[0]
    lines = [records.line(1, item), *records.reads(item), payload]
    text = sum(len(line.encode()) + 1 for line in lines) + 60
    return text, size_of([item.entry, item.rung])


def is_within(items: list[Record], budgets: Budgets) -> bool:
    costs = [cost(item) for item in items]
    return (
        sum(text for text, _ in costs) <= budgets.text_bytes
        and sum(data for _, data in costs) <= budgets.structured_bytes
    )


@monstrous
@given(held(record_pages()))
def test_the_largest_previews_are_taken_with_which_all_records_fit(
    monster: Held[RecordPage],
) -> None:
    page, before = monster.reading, list(monster.reading.records)
    page = records.fit(page, BUDGETS)
    budgets = records.inside(replace(page, records=before), BUDGETS)
    if len(page.records) < len(before):
        assert page.records == records.fit(replace(page, records=before), BUDGETS).records
        return
    sizes = iter(records.PREVIEW_BYTES)
    shown = [what_is_shown(item) for item in page.records]
    size = next(
        size for size in sizes if [trimmed(item, size, budgets) for item in before] == shown
    )
    assert is_within(page.records, budgets) or len(before) == 1
    larger = [one for one in records.PREVIEW_BYTES if one > size]
    for one in larger:
        assert not is_within([records._trim(item, one, budgets).item for item in before], budgets)
