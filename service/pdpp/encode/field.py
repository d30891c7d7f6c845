"""`FieldRead` -> the PDPP `field_window` body."""

from typing import Any

from evidence import routes, wire
from evidence.records import FieldRead
from evidence.values import Base64
from service.pdpp.encode.records import source_members

Body = dict[str, Any]


def encode_field(read: FieldRead) -> Body:
    """The window of a text, or the metadata of bytes."""
    body: Body = {
        "object": "field_window",
        "stream": read.ref.stream,
        "record_id": read.ref.record_id,
        **source_members(read.source),
        "url": routes.field_window(read.ref.stream, read.ref.record_id),
        "field": {"path": read.field_path, "type": read.type},
    }
    if read.media_type is not None:
        body["field"]["media_type"] = read.media_type
    if read.warnings:
        body["meta"] = {"warnings": read.warnings}
    if read.bytes is None:
        return {**body, "window": _window(read)}
    known = read.bytes.as_json()
    if isinstance(read.binary, Base64):
        del known["object"]
    return {**body, "binary": known}


def _window(read: FieldRead) -> Body:
    more = read.end < read.total
    window: Body = {
        **wire.window(read),
        "match_start_chars": read.match_start,
        "match_end_chars": read.match_end,
        "next_offset_chars": read.end if more else None,
        "previous_offset_chars": max(0, read.start - read.limit) if read.start else None,
    }
    if read.match is not None:
        window |= {"match": read.match, "next_match": read.next_match}
    return window
