"""`Record` and `RecordPage` -> the PDPP bodies of a record, a list and a list of changes."""

from typing import Any

from evidence.json_text import known
from evidence.model import Source
from evidence.records import Record, RecordPage, Related
from service.pdpp.encode.values import encode_data

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
    """The body of one record by itself, with its roles."""
    more = {"authored_at": record.authored_at, "title": record.title, "text": record.text}
    return {
        "connector_key": record.source.connector_key,
        **_members(record),
        "roles": record.roles,
        **known(more),
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
    """The members that name the source of a row."""
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
