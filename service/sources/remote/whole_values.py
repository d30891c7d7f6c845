"""Makes previews and windows of values that a server returns whole.

Nested values are read as canonical JSON, as everywhere.
"""

from dataclasses import replace
from itertools import islice
from typing import Any

from evidence import pointer, query
from evidence.errors import NotFound
from evidence.find import literals, spans
from evidence.limits import CONTRACT
from evidence.records import FieldRead, Record
from evidence.values import Base64, BlobRef
from evidence.values import previewed as shown
from evidence.values import text_of
from service.pdpp.decode.records import decode_value
from service.ports import WindowRequest

Body = dict[str, Any]


def previewed(record: Record) -> Record:
    """The record with values over 64 KiB as previews."""
    data = {
        name: shown(value, most_bytes=CONTRACT.inline_bytes) for name, value in record.data.items()
    }
    return replace(record, data=data)


def window(record: Record, data: Body, path: str, asked: WindowRequest) -> FieldRead:
    """The window of a field of a record that was read whole, with `data` as it was received."""
    name = pointer.top_level(path)
    if name not in data:
        raise NotFound(
            f"This record has no value in {name!r}. Call fetch to see which fields it has.",
            code="field_not_found",
            param="field_path",
        )
    value = pointer.inside(data[name], path)
    read = FieldRead(record.ref, record.source, path, pointer.json_type(value))
    known = decode_value(value)
    if isinstance(known, Base64 | BlobRef):
        return replace(read, type="binary", binary=known)
    return _window(read, text_of(value), asked)


def _window(read: FieldRead, text: str, asked: WindowRequest) -> FieldRead:
    start, size = asked.offset_chars or 0, asked.limit_chars
    if asked.query is not None:
        matches = list(islice(_matches(text, asked.query), asked.match - 1, asked.match + 1))
        if not matches:
            raise NotFound(
                "The query does not match this field. Try fewer or other words, or read by "
                "offset_chars.",
                code="query_not_found",
                param="query",
            )
        first, last = matches[0]
        start = max(0, first - (asked.before_chars or 0))
        if size is None and (asked.before_chars, asked.after_chars) != (None, None):
            size = last - start + (asked.after_chars or 0)
        read = replace(
            read,
            match_start=first,
            match_end=last,
            match=asked.match,
            next_match=asked.match + 1 if len(matches) > 1 else None,
        )
    start = min(start, len(text))
    size = min(size or CONTRACT.window_chars, CONTRACT.window_chars_max)
    shown = text[start : min(start + size, len(text))]
    return replace(read, text=shown, start=start, total=len(text), limit=size)


def _matches(text: str, needle: str) -> Any:
    """Ranges that match the query exactly, or without any, those that hold all its words."""
    places = list(islice(literals(text, needle), CONTRACT.page_items))
    if not places:
        places = [(span.start, span.end) for span in spans(text, query.parse(needle))]
    return iter(places)
