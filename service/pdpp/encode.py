"""Encodes typed values as PDPP bodies. No other code writes such bodies.

Bodies of searches have the additive keys of rank, coverage and words.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from evidence import schema_wire, wire
from evidence.handles import RecordRef
from evidence.hits import Hit, Match, SearchPage
from evidence.hits_wire import counts_json, report_json
from evidence.model import (
    DELETED_AT,
    Buckets,
    Continuation,
    FanIn,
    Source,
    as_of_json,
    chars,
    known,
    members,
)
from evidence.records import FieldRead, Record, RecordPage, Related
from evidence.schema import ConnectorList, Schema, StreamDetails, StreamList
from evidence.text import unmark
from evidence.values import Base64, Preview, as_json, data_as_json, field_window_read
from service.pdpp import NEWEST_PAGE_ONLY, NO_HITS
from service.ports import Answer, SearchQuery

Body = dict[str, Any]
_REST_NAMES = SearchQuery.marked("rest_name")


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
    body: Body = {"object": "record", "id": record.ref.record_id, "stream": record.ref.stream}
    if record.deleted:
        body |= {"deleted": True, "deleted_at": record.deleted_at}
    body |= {"emitted_at": record.emitted_at, **source_members(record.source)}
    if not record.deleted:
        body["data"] = data_as_json(record.data, record.ref, encode_value)
    return body


def _expanded(record: Record) -> Body:
    if not record.expanded:
        return {}
    return {"expanded": {name: _related(relation) for name, relation in record.expanded.items()}}


def source_members(source: Source) -> Body:
    """The members that identify the source of a row."""
    id = source.connection_id
    optional = {"display_name": source.display_name} if source.display_name else {}
    return {"connection_id": id, "connector_instance_id": id, **optional}


def _related(relation: Related) -> Body | None:
    records = [_encode_related(record) for record in relation.records]
    if relation.single:
        return records[0] if records else None
    body: Body = {"object": "list", "has_more": relation.has_more, "data": records}
    return body if relation.listing is None else {**body, "more": relation.listing}


def _encode_related(record: Record) -> Body:
    return {
        "object": "record",
        "id": record.ref.record_id,
        "stream": record.ref.stream,
        "emitted_at": record.emitted_at,
        "connection_id": record.source.connection_id,
        "data": data_as_json(record.data, record.ref, encode_value),
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
    binary = read.bytes.as_json()
    if isinstance(read.binary, Base64):
        del binary["object"]
    return {**body, "binary": binary}


def _window(read: FieldRead) -> Body:
    has_next = read.end < read.total
    window: Body = {
        **wire.window(read),
        **chars(read, "match_start", "match_end"),
        "next_offset_chars": read.end if has_next else None,
        "previous_offset_chars": max(0, read.start - read.limit) if read.start else None,
    }
    if read.match is not None:
        window |= members(read, "match", "next_match")
    return window


def encode_search(page: SearchPage) -> Body:
    """The PDPP body of a page; absent members are left out."""
    body: Body = {
        "object": "list",
        "url": f"/v1/search/{page.retrieval_mode}" if page.retrieval_mode else "/v1/search",
        "has_more": page.has_more,
        "data": [_encode_hit(hit) | _retrieval(page, hit) for hit in page.hits],
        "meta": _meta(page),
    }
    if page.next_cursor is not None:
        body["next_cursor"] = page.next_cursor
    return body


def _meta(page: SearchPage) -> Body:
    meta: Body = {}
    if page.counts:
        counts = meta["counts"] = counts_json(page.counts)
        meta |= {"count": counts["some"], "count_accuracy": counts["accuracy"]}
    meta["recall"] = page.recall
    meta["warnings"] = [*page.warnings, *_end_warnings(page)]
    optional = {
        "absent_words": page.absent_words or None,
        "nearest_words": page.nearest_words or None,
        "package": _package(page.fan_in) if page.fan_in else None,
        "tail": asdict(page.tail) if page.tail else None,
        "ranking": page.ranking,
        "model": page.model,
    }
    return meta | known(optional)


def _end_warnings(page: SearchPage) -> Iterator[Body]:
    """The end of a page as warnings; REST reports its tail and never cuts it."""
    if page.left_out is not None:
        yield {
            "code": NEWEST_PAGE_ONLY,
            "message": "sort=newest returns only one page. Matching records left out: "
            f"{page.left_out:,}. To reach them, narrow the search with since, until or filter.",
            "detail": {"left_out": page.left_out},
        }
    if page.retry is not None:
        names = {_REST_NAMES.get(name, name): value for name, value in page.retry.items()}
        yield {
            "code": NO_HITS,
            "message": "No results. To get hits, retry with the values in retry_arguments; leave "
            "out arguments that are null.",
            "detail": {"retry_arguments": names},
        }


def _package(fan_in: FanIn) -> Body:
    return {
        "member_count": fan_in.members,
        "waiting_count": fan_in.waiting,
        "partial": bool(fan_in.silent),
        "sources": [*map(report_json, fan_in.sources)],
    }


def _encode_hit(hit: Hit) -> Body:
    source = hit.source
    row: Body = {
        "object": "search_result",
        "stream": hit.ref.stream,
        "record_key": hit.ref.record_id,
        "connector_id": source.connector_key,
        "connector_key": source.connector_key,
        "emitted_at": hit.emitted_at,
        "record_url": hit.url or None,
        "connection_id": source.connection_id,
        "connector_instance_id": source.connection_id,
        "display_name": source.display_name,
        **members(hit, "matched_fields", "rank", "coverage", "matched_words", "missing_words"),
        **members(hit, "forms", "title", "authored_at", DELETED_AT),
    }
    row = known(row)
    if hit.matches:
        first = hit.matches[0]
        row["snippet"] = {"field": first.field_path, "text": first.shown}
    row["evidence_excerpts"] = [_excerpt(hit, match) for match in hit.matches]
    if hit.related is not None:
        path, begins, read = hit.related
        row |= {"kind": "related", "begins": begins, "related": _read_at(hit, path, read)}
    return row


def _retrieval(page: SearchPage, hit: Hit) -> Body:
    """What a hit has besides on PDPP's routes for meaning: how it was retrieved."""
    mode = page.retrieval_mode
    if mode == "hybrid":
        by_meaning = ["semantic"] if page.ranking != "words" else []
        sources = [*(["lexical"] if hit.matches else []), *by_meaning]
        return {"retrieval_mode": mode, "retrieval_sources": sources}
    if mode is None or not hit.matches:
        return known({"retrieval_mode": mode})
    first = hit.matches[0]
    snippet = {"field": first.field_path, "text": unmark(first.shown)}
    return {"retrieval_mode": mode, "snippet": snippet}


def _excerpt(hit: Hit, match: Match) -> Body:
    excerpt: Body = {
        "object": "evidence_excerpt",
        "field_path": match.field_path,
        "preview_text": match.shown,
        "provenance": "lexical_match",
        "truncated": not match.complete,
        **chars(match, "start", "end", "total", "match_start", "match_end"),
        "read": _read_at(hit, match.field_path, match.read),
    }
    return known(excerpt)


def _read_at(hit: Hit, field_path: str, read: Continuation) -> Body:
    """The `read` descriptor of a window: its call with REST names."""
    window = {
        _REST_NAMES.get(name, name): value
        for name, value in read.args.items()
        if name not in ("id", "field_path")
    }
    ref = hit.ref
    descriptor = field_window_read(ref.stream, ref.record_id, ref.connection_id, "", **window)
    return known({**descriptor, "field": field_path})


ENCODERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Buckets: wire.aggregation,
    ConnectorList: schema_wire.connectors,
    FieldRead: encode_field,
    Record: encode_record,
    RecordPage: encode_page,
    Schema: schema_wire.document,
    SearchPage: encode_search,
    StreamDetails: schema_wire.details,
    StreamList: schema_wire.streams,
}


def body(value: Any) -> dict[str, Any]:
    """The PDPP body of a value."""
    encoded = ENCODERS[type(value)](value)
    if stale := as_of_json(getattr(value, "as_of", ())):
        encoded["meta"]["as_of"] = stale
    return encoded


def body_of(answer: Answer[Any]) -> dict[str, Any]:
    """The body that a remote source sent, or else the encoded value."""
    return body(answer.value) if answer.body is None else answer.body
