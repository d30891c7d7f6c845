"""Reads a window of a field from the one or two rows that contain it, not from the whole field."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from evidence import pointer
from evidence.errors import InvalidRequest, NotFound
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from evidence.ranking import Group
from evidence.records import FieldRead
from evidence.text import looks_binary
from evidence.values import is_reference, text_of
from service.records.engine import Snapshot
from service.records.engine.later import iterate
from service import port_rules
from service.ports import WindowRequest
from service.records.reading import blobs, lists
from service.records.view.documents import GrantedRecord, read_chunks
from service.records.search.required_parts import groups_to_read
from service.records.view.texts import ChunkedText, InlineText, matches
from service.records.view import View


def read_window(
    snapshot: Snapshot, view: View, ref: RecordRef, path: str, window: WindowRequest
) -> FieldRead:
    """A window of a field; binary values are described."""
    name = pointer.top_level(path)
    candidates = view.stream(ref.stream, ref.connection_id)
    if not any(name in candidate.granted for candidate in candidates):
        candidates[0].require(name, param="field_path")
    stream, stored = lists.find(
        snapshot, view, ref, lambda stream: stream.require(name, param="field_path")
    )
    stream.require(name, param="field_path")
    granted = GrantedRecord(snapshot, view, stream, stored)
    kind, value = _value(granted, path, name, window)
    read = FieldRead(granted.ref, stream.origin, path, kind)
    binary = blobs.described(granted, name, value)
    if binary is not None:
        text = blobs.text_of(granted, name, binary)
        if text is None:
            return replace(read, type="binary", binary=binary)
        read, value = replace(read, media_type=binary.media_type), InlineText(text)
    groups: Sequence[Group] = ()
    if window.query is not None:
        groups = groups_to_read(snapshot, view, view.question(snapshot, window.query))
    return port_rules.window(
        read,
        window,
        value.total,
        lambda start, end: value.read(start, end).get(),
        lambda query: iterate(matches(value, query, groups)),
    )


def _value(granted: GrantedRecord, path: str, name: str, window: WindowRequest) -> tuple[str, Any]:
    """(JSON type, `Text` or blob reference or base64 text) of the value at a path."""
    snapshot, stream, stored = granted.snapshot, granted.stream, granted.stored
    if name in stored.big and path in (name, pointer.escaped(name)):
        big = stored.big[name]
        text = ChunkedText(snapshot, stored.seq, big, stream.search_ordinal(name))
        head, start = snapshot.text(big, 0, 0), window.offset_chars or 0
        if window.query is None:  # a far engine reads the window with the head
            text.read(start, start + (window.limit_chars or CONTRACT.window_chars))
        if big.type == "string" and looks_binary(head.get()):
            return "string", read_chunks(snapshot, big)
        return big.type, text
    if name in stored.big:
        big = stored.big[name]
        if big.type == "string":
            raise NotFound(
                "This field is plain text; JSON Pointers do not apply. Read the whole field.",
                code="field_not_found",
                param="field_path",
            )
        if big.bytes > CONTRACT.export_bytes:
            raise InvalidRequest(
                "This value is too large for a JSON Pointer. Read the whole field in windows.",
                code="invalid_field_path",
                param="field_path",
            )
        top = orjson.loads(read_chunks(snapshot, big))
    elif name in stored.data:
        top = stored.data[name]
    else:
        raise port_rules.no_value(name)
    value = pointer.inside(top, path)
    kind = pointer.json_type(value)
    if is_reference(value) or (isinstance(value, str) and looks_binary(value)):
        return kind, value
    search_path = path if pointer.is_nested(path) else pointer.path_of(name)
    if kind == "array" and search_path in stream.searchable.values():
        return kind, InlineText(pointer.searched_text(value))
    return kind, InlineText(text_of(value))
