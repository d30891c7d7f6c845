"""Converts typed results to MCP `structuredContent`. The text channel has the same information.

Calls are `{"tool": …, "args": {…}, "why": …}`. `untrusted` accompanies all record text.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote_plus

from evidence import pointer
from evidence.errors import EvidenceError
from evidence.handles import UNRESERVED
from evidence.model import Buckets, Continuation, absolute, as_of_json, chars, known, members
from evidence.model import paged, source_of, spelled
from evidence.records import Count, Document, FieldRead, RecordPage
from evidence.text import json_line
from evidence.values import Base64, Bytes

_ROUTED = frozenset({"object", "method", "route", "stream", "record_id"})  # not in the query


def bytes_line(content: Bytes) -> str:
    """How an HTTP client gets the bytes, or a note that they are missing."""
    if content.route is None:
        return "not stored here: only this metadata was imported. Ask the owner for the bytes."
    name = pointer.top_level(content.field_path)
    what = f" ({name} is base64)" if isinstance(content.known, Base64) else ""
    return f"HTTP GET {json_line(content.route)} with the same bearer token{what}"


def records(page: RecordPage, calls: Sequence[Continuation]) -> dict[str, Any]:
    """`{data, content_ladder}`: the list with its records, and the next calls of both."""
    data = {
        "object": "list",
        "has_more": page.has_more,
        "next_cursor": page.next_cursor,
        "next_changes_since": page.next_changes_since,
        "meta": {"count": count(page.count), "warnings": page.warnings},
        "as_of": as_of_json(page.as_of),
        "data": [item.entry for item in page.records],
    }
    return {
        "data": paged(data, calls, page.ended_early),
        "content_ladder": {
            "kind": "record_set",
            "read_tool": "read_record_field",
            "records": [item.rung for item in page.records],
        },
        "untrusted": True,
    }


def count(total: Count) -> dict[str, Any]:
    """`{kind}`, with the `value` if records were counted."""
    return {"kind": total.kind} if total.value is None else total._asdict()


def document(document: Document, *, base_url: str = "") -> dict[str, Any]:
    """Exactly `id, title, text, url, metadata`; `metadata.next_read` is the call that continues."""
    metadata = dict(document.metadata)
    if document.next_read:
        metadata["next_read"] = spelled(document.next_read)
    metadata |= {name: spelled(continuation) for name, continuation in document.more.items()}
    metadata |= {f"bytes.{content.field_path}": bytes_line(content) for content in document.bytes}
    url = absolute(base_url, document.url)
    return {**members(document, "id", "title", "text"), "url": url, "metadata": metadata}


def field(read: FieldRead) -> dict[str, Any]:
    """`{record, field, window, next?, previous?, end?, next_match?}`, or `binary` metadata.

    `warnings` is present if there are any.
    """
    body: dict[str, Any] = {
        "record": {
            "id": read.id,
            **source_of(read.source),
            "stream": read.ref.stream,
            "record_id": read.ref.record_id,
        },
        "field": {"path": read.field_path, "type": read.type},
    }
    if read.media_type:
        body["field"]["media_type"] = read.media_type
    if read.warnings:
        body["warnings"] = read.warnings
    if read.bytes is not None:
        described = read.bytes.as_json()
        body["binary"] = {name: fact for name, fact in described.items() if name != "object"}
        return body
    matched = chars(read, "match_start", "match_end")
    body["window"] = window(read) | known({**matched, "match": read.match})
    for continuation in read.continuations():
        body[continuation.why] = continuation.as_json
    body["untrusted"] = True
    return body


def window(read: FieldRead) -> dict[str, Any]:
    """The text of a window and its position."""
    return {
        "text": read.text,
        **chars(read, "start", "end", "total", "limit"),
        "complete": read.complete,
        "has_more": read.end < read.total,
    }


def aggregate(buckets: Buckets) -> dict[str, Any]:
    """`{data}`: the aggregation, with the call for further groups."""
    data = aggregation(buckets) | known({"as_of": as_of_json(buckets.as_of)})
    if buckets.next_cursor is None:
        data.pop("next_cursor", None)
    if continuations := buckets.continuations():
        data["next"] = [continuation.as_json for continuation in continuations]
    if buckets.ended_early:
        data["ended_early"] = True
    return {"data": data}


def aggregation(buckets: Buckets) -> dict[str, Any]:
    """A single value or a page of groups, as REST returns it."""
    grouping = members(buckets, "field", "group_by", "group_by_time", "granularity", "time_zone")
    data: dict[str, Any] = {
        "object": "aggregation",
        **members(buckets, "stream", "metric"),
        **grouping,
        **members(buckets, "approximate", "filtered_record_count"),
    }
    if buckets.groups is None:
        data["value"] = buckets.value
    else:
        data["groups"] = [members(group, *buckets.group_members) for group in buckets.groups]
        data |= known(members(buckets, "limit", "other_count", "group_count"))
        data["next_cursor"] = buckets.next_cursor
    data["meta"] = {"count": {"kind": "none"}, "warnings": [*buckets.warnings]}
    return data


def failure(error: EvidenceError) -> dict[str, Any]:
    """`{error}` with the calls that would work instead."""
    body = error.body()
    if error.calls:
        body["next"] = [continuation.as_json for continuation in error.calls]
    return {"error": body}


def link_excerpts(body: dict[str, Any]) -> dict[str, Any]:
    """A search body whose excerpts carry `links.read`: the address that opens the match."""
    hits = [{**hit, "evidence_excerpts": _linked(hit)} for hit in body["data"]]
    return {**body, "data": hits}


def _linked(hit: dict[str, Any]) -> list[dict[str, Any]]:
    excerpts = hit.get("evidence_excerpts") or []
    return [
        {**excerpt, "links": {"read": _address(excerpt["read"])}} if "read" in excerpt else excerpt
        for excerpt in excerpts
    ]


def _address(read: dict[str, Any]) -> str:
    parameters = ((name, str(value)) for name, value in read.items() if name not in _ROUTED)
    query = "&".join(
        f"{name}={value if UNRESERVED.fullmatch(value) else quote_plus(value)}"
        for name, value in parameters
    )
    return f"{read['route']}?{query}"
