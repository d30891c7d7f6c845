"""Bounded reads of one field: a window costs the one or two rows it lies in, never the field."""

from itertools import islice
from typing import Any

import orjson

from evidence import binary, pointer, routes
from evidence.errors import InvalidRequest, NotFound
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from evidence.text import looks_binary
from service.records.engine import Stored
from service.records.sqlite.snapshot import SqliteSnapshot as Snapshot
from service.ports import WindowRequest
from service.records import blobs, documents, lists
from service.records.finding import matches
from service.records.texts import ChunkedText, InlineText, Text
from service.records.view import View


def read_window(
    snapshot: Snapshot, view: View, ref: RecordRef, path: str, window: WindowRequest
) -> dict[str, Any]:
    """A window of a field as the PDPP `field_window` body; binary values come as metadata."""
    name = pointer.top_level(path)
    candidates = view.stream(ref.stream, ref.connection_id)
    if not any(name in candidate.granted for candidate in candidates):
        candidates[0].require(name, param="field_path")
    stream, seq = lists.find(
        snapshot, view, ref, lambda stream: stream.require(name, param="field_path")
    )
    stream.require(name, param="field_path")
    stored = snapshot.load([seq])[seq]
    body: dict[str, Any] = {
        "object": "field_window",
        "stream": stream.name,
        "record_id": stored.record_key,
        **stream.source,
        "url": routes.field_window(stream.name, stored.record_key),
    }
    kind, value = _value(snapshot, stored, path, name)
    body["field"] = {"path": path, "type": kind}
    known = blobs.metadata(snapshot, view, stream, stored, name, value)
    if known is not None:
        text = blobs.text_of(snapshot, stored, name, known)
        if text is None:
            body["field"]["type"] = "binary"
            body["binary"] = known
            return body
        body["field"]["media_type"] = known.get("mime_type")
        value = InlineText(text)
    body["window"] = _window(value, window)
    return body


def _value(snapshot: Snapshot, stored: Stored, path: str, name: str) -> tuple[str, Any]:
    """(JSON type, `Text` or blob reference or base64 text) of what a path names."""
    if name in stored.big and path in (name, pointer.escaped(name)):
        big = stored.big[name]
        head = documents.read_chunks(snapshot, big, 0, 0)
        if big.type == "string" and looks_binary(head):
            return "string", documents.read_chunks(snapshot, big)
        return big.type, ChunkedText(snapshot, big)
    if name in stored.big:
        big = stored.big[name]
        if big.type == "string":
            raise NotFound(
                "This field is text: nothing lies inside it. Read the field itself.",
                code="field_not_found",
                param="field_path",
            )
        if big.bytes > CONTRACT.export_bytes:
            raise InvalidRequest(
                "This value is too large to be read by pointer. Read the whole field by windows.",
                code="invalid_field_path",
                param="field_path",
            )
        top = orjson.loads(documents.read_chunks(snapshot, big))
    elif name in stored.data:
        top = stored.data[name]
    else:
        raise NotFound(
            f"This record has no value in {name!r}. Call fetch to see which fields it has.",
            code="field_not_found",
            param="field_path",
        )
    value = pointer.inside(top, path)
    kind = pointer.json_type(value)
    if binary.is_reference(value) or (isinstance(value, str) and looks_binary(value)):
        return kind, value
    if isinstance(value, str):
        return kind, InlineText(value)
    return kind, InlineText(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


def _window(text: Text, window: WindowRequest) -> dict[str, Any]:
    if window.query is None:
        start = min(window.offset_chars or 0, text.total)
        size = window.limit_chars or CONTRACT.window_chars
        return _describe(text, start, min(start + size, text.total), size)
    number = min(window.match, text.total + 1)  # no text has more matches than characters
    found = list(islice(matches(text, window.query), number - 1, number + 1))
    if not found:
        raise _not_found(window)
    begin, stop = found[0]
    start = max(0, begin - (window.before_chars or 0))
    size = window.limit_chars or _context(window, stop - start)
    shown = _describe(text, start, min(start + size, text.total), size)
    shown["match_start_chars"], shown["match_end_chars"] = begin, stop
    shown["match"] = window.match
    shown["next_match"] = window.match + 1 if len(found) > 1 else None
    return shown


def _context(window: WindowRequest, until_match_end: int) -> int:
    if window.before_chars is None and window.after_chars is None:
        return CONTRACT.window_chars
    size = until_match_end + (window.after_chars or 0)
    return min(size, CONTRACT.window_chars_max)


def _not_found(window: WindowRequest) -> NotFound:
    if window.match > 1:
        return NotFound(
            f"There is no match number {window.match}. Retry with a smaller match.",
            code="query_not_found",
            param="match",
        )
    return NotFound(
        "The query is not in this field. Try fewer or other words, or read by offset_chars.",
        code="query_not_found",
        param="query",
    )


def _describe(text: Text, start: int, end: int, size: int) -> dict[str, Any]:
    return {
        "text": text.read(start, end),
        "total_chars": text.total,
        "start_chars": start,
        "end_chars": end,
        "limit_chars": size,
        "complete": start == 0 and end >= text.total,
        "has_more": end < text.total,
        "match_start_chars": None,
        "match_end_chars": None,
        "next_offset_chars": end if end < text.total else None,
        "previous_offset_chars": max(0, start - size) if start else None,
    }
