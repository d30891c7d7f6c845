"""`Record`, `RecordPage` and `FieldRead` -> the PDPP bodies of records, lists and fields."""

from typing import Any

from evidence import wire
from evidence.handles import RecordRef
from evidence.model import Source, chars, known, members
from evidence.records import FieldRead, Record, RecordPage, Related
from evidence.values import PLAIN, Base64, Preview, as_json, field_window_read

Body = dict[str, Any]


def encode_page(page: RecordPage) -> Body:
    """The list body of a page."""
    body: Body = {
        "object": "list",
        "url": f"/v1/streams/{page.stream}/records",
        "has_more": page.has_more,
        "data": [encode_row(record) for record in page.records],
    }
    if page.next_changes_since is not None:
        body["next_changes_since"] = page.next_changes_since
    body["meta"] = {"count": known(page.count._asdict()), "warnings": page.warnings}
    if page.span:
        body["meta"]["window"] = known(page.span._asdict())
    if page.next_cursor is not None:
        body["next_cursor"] = page.next_cursor
    return body


def encode_row(record: Record) -> Body:
    """A record of a list."""
    return {**_members(record), **_expanded(record)}


def encode_record(record: Record) -> Body:
    """The body of a single record, with its roles."""
    return {
        "connector_key": record.source.connector_key,
        **_members(record),
        "roles": record.roles,
        **known(members(record, "authored_at", "title", "text")),
        **_expanded(record),
    }


def _members(record: Record) -> Body:
    body: Body = {
        "object": "record",
        "id": record.ref.record_id,
        "stream": record.ref.stream,
    }
    if record.deleted:
        body |= {"deleted": True, "deleted_at": record.deleted_at}
    body |= {"emitted_at": record.emitted_at, **source_members(record.source)}
    if not record.deleted:
        body["data"] = encode_data(record.data, record.ref)
    return body


def _expanded(record: Record) -> Body:
    if not record.expanded:
        return {}
    return {"expanded": {name: _related(found) for name, found in record.expanded.items()}}


def source_members(source: Source) -> Body:
    """The members that identify the source of a row."""
    id = source.connection_id
    named = {"display_name": source.display_name} if source.display_name else {}
    return {"connection_id": id, "connector_instance_id": id, **named}


def _related(found: Related) -> Body | None:
    records = [_encode_related(record) for record in found.records]
    if found.single:
        return records[0] if records else None
    body: Body = {"object": "list", "has_more": found.has_more, "data": records}
    return body if found.listing is None else {**body, "more": found.listing}


def _encode_related(record: Record) -> Body:
    return {
        "object": "record",
        "id": record.ref.record_id,
        "stream": record.ref.stream,
        "emitted_at": record.emitted_at,
        "connection_id": record.source.connection_id,
        "data": encode_data(record.data, record.ref),
    }


def encode_value(value: Any, ref: RecordRef, name: str) -> Any:
    """The JSON of the value of a field."""
    if isinstance(value, Preview):
        return {
            "object": "field_preview",
            **members(value, "type", "size_chars", "size_bytes"),
            "read": _read(ref, name),
            "preview_text": value.text,
        }
    if isinstance(value, Base64):
        return {**as_json(value, ref, name), "read": _read(ref, name)}
    return as_json(value, ref, name)


def encode_data(data: dict[str, Any], ref: RecordRef) -> dict[str, Any]:
    """The `data` of a record."""
    return {
        name: value if type(value) in PLAIN else encode_value(value, ref, name)
        for name, value in data.items()
    }


def _read(ref: RecordRef, name: str) -> dict[str, Any]:
    return field_window_read(ref.stream, ref.record_id, ref.connection_id or "", name)


def encode_field(read: FieldRead) -> Body:
    """The window of a text, or the metadata of bytes."""
    body: Body = {
        "object": "field_window",
        "stream": read.ref.stream,
        "record_id": read.ref.record_id,
        **source_members(read.source),
        "url": f"{read.ref._replace(connection_id=None).url}/field-window",
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
        **chars(read, "match_start", "match_end"),
        "next_offset_chars": read.end if more else None,
        "previous_offset_chars": max(0, read.start - read.limit) if read.start else None,
    }
    if read.match is not None:
        window |= members(read, "match", "next_match")
    return window
