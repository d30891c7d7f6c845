"""Values that come whole: previews where they are large, windows where a server gives none.

Nested values are read as canonical JSON, as everywhere.
"""

from itertools import islice
from typing import Any

from evidence import binary, pointer, query
from evidence.errors import NotFound
from evidence.find import literals, spans
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from service.pdpp import previews
from service.pdpp.decode import reference, source_of, without
from evidence.text import looks_binary
from service.ports import WindowRequest

Body = dict[str, Any]


def previewed(data: Body, ref: RecordRef) -> Body:
    """Return the fields of a record, those over 64 KiB as `field_preview` with their `read`."""
    return {
        name: previews.preview(name, value, ref, most_bytes=CONTRACT.inline_bytes)
        for name, value in data.items()
    }


def previewed_rows(page: Body, stream: str) -> Body:
    """Return a page of records with large values as previews."""
    rows = [_previewed_row(row, stream) for row in page.get("data") or ()]
    return {**page, "data": rows} if rows else page


def _previewed_row(row: Body, stream: str) -> Body:
    data, ref = row.get("data"), reference(row, stream, source_of(row))
    if ref is None or not isinstance(data, dict):
        return row
    return {**row, "data": previewed(data, ref)}


def window(record: Body, path: str, asked: WindowRequest) -> Body:
    """The `field_window` body of a field of a record that was read whole."""
    name = pointer.top_level(path)
    data = record.get("data")
    if not isinstance(data, dict) or name not in data:
        raise NotFound(
            f"This record has no value in {name!r}. Call fetch to see which fields it has.",
            code="field_not_found",
            param="field_path",
        )
    value = pointer.inside(data[name], path)
    kept = ("stream", "connection_id", "connector_key", "display_name")
    body: Body = {
        "object": "field_window",
        **{key: record[key] for key in kept if key in record},
        "record_id": record.get("id"),
        "field": {"path": path, "type": pointer.json_type(value)},
    }
    known = _binary(value)
    if known is not None:
        owner = record.get("connection_id")
        ref = RecordRef(str(record.get("stream")), str(record.get("id")), owner or None)
        shown = without(binary.described(known, ref, path), ("object",))
        return {**body, "field": {"path": path, "type": "binary"}, "binary": shown}
    return {**body, "window": _window(previews.text_of(value), asked)}


def _binary(value: Any) -> Body | None:
    """What is known of a blob or of base64 text, without its bytes."""
    if binary.is_reference(value):
        return {key: one for key, one in value.items() if key != "data_base64"}
    if isinstance(value, str) and looks_binary(value):
        return binary.base64_field(value)
    return None


def _window(text: str, asked: WindowRequest) -> Body:
    found: Body = {"match_start_chars": None, "match_end_chars": None}
    start, size = asked.offset_chars or 0, asked.limit_chars
    if asked.query is not None:
        matches = list(islice(_matches(text, asked.query), asked.match - 1, asked.match + 1))
        if not matches:
            raise NotFound(
                "The query is not in this field. Try fewer or other words, or read by "
                "offset_chars.",
                code="query_not_found",
                param="query",
            )
        first, last = matches[0]
        start = max(0, first - (asked.before_chars or 0))
        if size is None and (asked.before_chars, asked.after_chars) != (None, None):
            size = last - start + (asked.after_chars or 0)
        found = {"match_start_chars": first, "match_end_chars": last, "match": asked.match}
        found["next_match"] = asked.match + 1 if len(matches) > 1 else None
    start = min(start, len(text))
    size = min(size or CONTRACT.window_chars, CONTRACT.window_chars_max)
    end = min(start + size, len(text))
    return {
        "text": text[start:end],
        "total_chars": len(text),
        "start_chars": start,
        "end_chars": end,
        "limit_chars": size,
        "complete": start == 0 and end == len(text),
        "has_more": end < len(text),
        "next_offset_chars": end if end < len(text) else None,
        "previous_offset_chars": max(0, start - size) if start else None,
        **found,
    }


def _matches(text: str, needle: str) -> Any:
    """Ranges that read the query, or where it is nowhere, that hold all its words."""
    places = list(islice(literals(text, needle), CONTRACT.page_items))
    if not places:
        places = [(span.start, span.end) for span in spans(text, query.parse(needle))]
    return iter(places)
