"""Makes previews and windows of values that a server returns whole.

Nested values are read as canonical JSON, as everywhere.
"""

from dataclasses import replace
from itertools import islice
from typing import Any

from evidence import pointer
from evidence.find import literals, spans
from evidence.limits import CONTRACT
from evidence.question import parse_query
from evidence.records import FieldRead, Record
from evidence.values import Base64, BlobRef
from evidence.values import previewed as shown
from evidence.values import text_of
from service.pdpp.decode.records import decode_value
from service import port_rules
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
        raise port_rules.no_value(name)
    value = pointer.inside(data[name], path)
    read = FieldRead(record.ref, record.source, path, pointer.json_type(value))
    known = decode_value(value)
    if isinstance(known, Base64 | BlobRef):
        return replace(read, type="binary", binary=known)
    text = text_of(value)
    return port_rules.window(
        read,
        asked,
        len(text),
        lambda start, stop: text[start:stop],
        lambda needle: _matches(text, needle),
    )


def _matches(text: str, needle: str) -> Any:
    """Ranges that match the query exactly, or without any, those that hold all its words."""
    places = list(islice(literals(text, needle), CONTRACT.page_items))
    if not places:
        places = [(span.start, span.end) for span in spans(text, parse_query(needle))]
    return iter(places)
