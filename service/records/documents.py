"""From stored rows to the `data` of a record, as one grant may see it.

`show` is for MCP, `show_over_rest` and `show_named` for REST, which gives larger values whole.
Values that are left out become previews. Nested values in chunk rows stay the JSON text they are
stored as: parsed, they would take many times their size.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from evidence import routes
from evidence.errors import TooLarge
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.text import BASE64_MIN, looks_binary
from evidence.values import Base64, Preview, base64_of, is_reference, previewed
from service.pdpp.encode.records import encode_value
from service.records.engine import Big, Snapshot, Stored
from service.records import attached
from service.records.view import StreamView, View

#: JSON bytes a code point takes at most: in stored JSON, and escaped.
STORED_CHAR_BYTES, ESCAPED_CHAR_BYTES = 4, 6


def read_chunks(snapshot: Snapshot, big: Big, first: int = 0, last: int | None = None) -> str:
    """The text of these chunks."""
    return "".join(snapshot.chunks(big, first, last))


def show(
    snapshot: Snapshot, grant: View, view: StreamView, stored: Stored, fields: tuple[str, ...]
) -> dict[str, Any]:
    """The `data` of a record with `fields` only; large and binary values are described.

    `grant` is all that the grant shows: it decides whether the bytes of a blob can be had.
    """
    shown: dict[str, Any] = {}
    for field in fields:
        if field in stored.data:
            shown[field] = _show_value(snapshot, grant, view, stored, field)
        elif field in stored.big:
            shown[field] = _preview(snapshot, view, stored, field)
    return shown


def show_over_rest(
    snapshot: Snapshot, grant: View, view: StreamView, stored: Stored, fields: tuple[str, ...]
) -> dict[str, Any]:
    """As `show`, but values up to 1 MiB are whole, as long as the record stays below 8 MiB.

    The largest of a larger record become previews. No more is read than is shown.
    """
    present = [field for field in fields if _has(stored, field)]
    if _most_bytes(stored, present) <= BUDGETS.rest_page_bytes:
        return {field: _show_over_rest(snapshot, grant, view, stored, field) for field in present}
    ref = RecordRef(view.name, stored.record_key, view.connection_id)
    shown, costs, used = dict[str, Any](), dict[str, int](), 0
    for field in sorted(present, key=lambda field: _bytes(stored, field)):
        fits = used < BUDGETS.rest_page_bytes
        show_field = _show_over_rest if fits else _show_preview
        shown[field] = show_field(snapshot, grant, view, stored, field)
        costs[field] = _json_bytes(shown[field], ref, field)
        used += costs[field]
    for field in reversed(costs):
        if used <= BUDGETS.rest_page_bytes:
            break
        shown[field] = _show_preview(snapshot, grant, view, stored, field)
        used -= costs[field] - _json_bytes(shown[field], ref, field)
    return {field: shown[field] for field in present}


def _json_bytes(value: Any, ref: RecordRef, field: str) -> int:
    """The size of a field in a REST body."""
    return len(orjson.dumps({field: encode_value(value, ref, field)}))


def _most_bytes(stored: Stored, fields: Iterable[str]) -> int:
    """Return a bound of the bytes of these fields as JSON that costs nothing to work out."""
    large = sum(stored.big[field].chars for field in fields if field in stored.big)
    return STORED_CHAR_BYTES * stored.chars + ESCAPED_CHAR_BYTES * large


def _bytes(stored: Stored, field: str) -> int:
    """Return the size of a value in UTF-8, before it is escaped."""
    if field in stored.big:
        return stored.big[field].bytes
    return len(orjson.dumps(stored.data[field]))


def _show_over_rest(
    snapshot: Snapshot, grant: View, view: StreamView, stored: Stored, field: str
) -> Any:
    """Return a value of up to 1 MiB whole, a larger or a binary one as what is known of it."""
    if field in stored.data:
        return _show_value(snapshot, grant, view, stored, field)
    big = stored.big[field]
    if big.bytes > CONTRACT.whole_bytes or looks_binary(read_chunks(snapshot, big, 0, 0)):
        return _preview(snapshot, view, stored, field)
    return _whole(snapshot, big)


def _show_preview(
    snapshot: Snapshot, grant: View, view: StreamView, stored: Stored, field: str
) -> Any:
    """Return a preview of a value that is larger than one."""
    if field in stored.big:
        return _preview(snapshot, view, stored, field)
    value = _show_value(snapshot, grant, view, stored, field)
    return previewed(value, most_bytes=BUDGETS.preview_chars)


def _whole(snapshot: Snapshot, big: Big) -> Any:
    text = read_chunks(snapshot, big)
    return text if big.type == "string" else orjson.Fragment(text)


def show_named(
    snapshot: Snapshot, grant: View, view: StreamView, stored: Stored, fields: tuple[str, ...]
) -> dict[str, Any]:
    """As `show`, but all values are whole, up to 32 MB together; raises `TooLarge` beyond."""
    sizes = {field: _bytes(stored, field) for field in fields if _has(stored, field)}
    if sum(sizes.values()) > CONTRACT.export_bytes:
        largest = max(sizes, key=lambda field: sizes[field])
        raise TooLarge(
            f"These fields have {sum(sizes.values())} bytes; the limit is "
            f"{CONTRACT.export_bytes}. Request fewer fields, or read them in windows with the "
            "field-window URL in `read`.",
            code="response_too_large",
            param="fields",
            read=routes.field_window_read(
                view.name, stored.record_key, view.connection_id, largest
            ),
        )
    return {
        field: (
            _linked(snapshot, grant, view, stored, field, stored.data[field])
            if field in stored.data
            else _whole(snapshot, stored.big[field])
        )
        for field in sizes
    }


def _has(stored: Stored, field: str) -> bool:
    return field in stored.data or field in stored.big


def _show_value(
    snapshot: Snapshot, grant: View, view: StreamView, stored: Stored, field: str
) -> Any:
    """Return a small value: base64 text described, references to blobs with what is stored."""
    value = stored.data[field]
    if isinstance(value, str):
        if len(value) < BASE64_MIN or not looks_binary(value):
            return value
        return base64_of(value, declared=view.manifest.fields[field].media_type)
    return _linked(snapshot, grant, view, stored, field, value)


def _preview(snapshot: Snapshot, view: StreamView, stored: Stored, field: str) -> Preview | Base64:
    big = stored.big[field]
    head = read_chunks(snapshot, big, 0, 0)
    if big.type == "string" and looks_binary(head):
        tail = read_chunks(snapshot, big, big.chunks - 1)
        declared = view.manifest.fields[field].media_type
        return base64_of(head, chars=big.chars, tail=tail, declared=declared)
    return Preview(head[: BUDGETS.preview_chars], big.chars, big.type, big.bytes)


def _linked(
    snapshot: Snapshot, grant: View, view: StreamView, stored: Stored, field: str, value: Any
) -> Any:
    """A value in which references to blobs, alone or in a list, are resolved."""
    if isinstance(value, dict) and is_reference(value):
        return attached.resolved(snapshot, grant, view, stored.seq, field, value)
    if isinstance(value, list) and any(map(is_reference, value)):
        return [_linked(snapshot, grant, view, stored, field, one) for one in value]
    return value
