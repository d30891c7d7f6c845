"""Typed readings -> the JSON of MCP `structuredContent`. The text channel carries the same facts.

Calls are `{"tool": …, "args": {…}, "why": …}`. `untrusted` accompanies all record text.
"""

from functools import lru_cache
from typing import Any

from evidence import pointer
from evidence.errors import EvidenceError
from evidence.limits import BUDGETS
from evidence.json_text import known
from evidence.model import Buckets, Continuation, Group, Source
from evidence.records import Count, Document, FieldRead, Partial, Record, RecordPage, Related
from evidence.text import clip, json_line
from evidence.values import Bytes


def call(continuation: Continuation) -> dict[str, Any]:
    """A call as data."""
    return {"tool": continuation.operation, "args": continuation.args, "why": continuation.why}


def spelled(continuation: Continuation) -> str:
    """A call as one line: tool name, space, JSON."""
    return f"{continuation.operation} {json_line(continuation.args)}"


def bytes_line(found: Bytes) -> str:
    """How an HTTP client gets the bytes, or a note that they are missing."""
    if found.route is None:
        return "not stored here: only this metadata was imported. Ask the owner for the bytes."
    what = f" ({pointer.top_level(found.field_path)} is base64)" if found.is_base64 else ""
    return f"HTTP GET {json_line(found.route)} with the same bearer token{what}"


def bytes_of(found: Bytes) -> dict[str, Any]:
    """A blob or base64 text as data: its field and its metadata."""
    named = ("blob_id", "encoding", "mime_type", "size_bytes", "fetch_url", "available")
    described = found.as_json()
    shown = {name: described[name] for name in named if name in described}
    return {"field_path": found.field_path, **shown}


def records(page: RecordPage) -> dict[str, Any]:
    """`{data, content_ladder}`: the list with its records, and how to read their rest."""
    data = {
        "object": "list",
        "has_more": page.has_more,
        "next_cursor": page.next_cursor,
        "next_changes_since": page.next_changes_since,
        "meta": {"count": count(page.count), "warnings": page.warnings},
        "data": [record(item) for item in page.records],
    }
    return {
        "data": paged(data, page.continuations(), page.ended_early),
        "content_ladder": {
            "kind": "record_set",
            "read_tool": "read_record_field",
            "records": [record_rung(item) for item in page.records],
        },
        "untrusted": True,
    }


def count(found: Count) -> dict[str, Any]:
    """`{kind}`, with the `value` if records were counted."""
    return known(found._asdict())


def record(item: Record) -> dict[str, Any]:
    """One record of `data.data`."""
    shown: dict[str, Any] = {
        "object": "record",
        "id": item.ref.record_id,
        "stream": item.ref.stream,
    }
    if item.deleted:
        shown["deleted"] = True
    facts = {
        "deleted_at": item.deleted_at,
        "emitted_at": item.emitted_at,
        "authored_at": item.authored_at,
        **item.source._asdict(),
    }
    shown |= {name: fact for name, fact in facts.items() if fact is not None}
    if item.expanded:
        shown["expanded"] = related(item)
    if not item.deleted:
        shown["data"] = item.shown
    return shown


def related(item: Record) -> dict[str, Any]:
    """The ids of related records by relation; each one can be fetched."""
    return {name: _handles(found) for name, found in item.expanded.items()}


def _handles(found: Related) -> dict[str, Any]:
    return {"ids": [one.id for one in found.records], "has_more": found.has_more}


def record_rung(item: Record) -> dict[str, Any]:
    """One record of `content_ladder.records`: which fields go on, and how."""
    rung: dict[str, Any] = {"id": item.id}
    if held := item.bytes:
        rung["bytes"] = [bytes_of(one) for one in held]
    if item.partial:
        rung["fields"] = [_partial(part) for part in item.partial]
    if rest := item.rest:
        rung["left_out"] = len(item.left_out)
        rung["next"] = call(rest)
    if listed := item.related:
        rung["related"] = [call(one) for one in listed]
    return rung


def _partial(part: Partial) -> dict[str, Any]:
    sizes = {} if part.total is None else {"shown_chars": part.end, "total_chars": part.total}
    return {"field_path": part.field_path, **sizes, "read": call(part.read)}


def document(found: Document, *, base_url: str = "") -> dict[str, Any]:
    """Exactly `id, title, text, url, metadata`; `metadata.next_read` reads on."""
    metadata = dict(found.metadata)
    if found.next_read:
        metadata["next_read"] = spelled(found.next_read)
    metadata |= {name: spelled(continuation) for name, continuation in found.more.items()}
    metadata |= {f"bytes.{one.field_path}": bytes_line(one) for one in found.bytes}
    return {
        "id": found.id,
        "title": found.title,
        "text": found.text,
        "url": absolute(base_url, found.url),
        "metadata": metadata,
    }


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
        body["binary"] = {name: one for name, one in described.items() if name != "object"}
        return body
    matched = {
        "match_start_chars": read.match_start,
        "match_end_chars": read.match_end,
        "match": read.match,
    }
    body["window"] = window(read) | known(matched)
    for continuation in read.continuations():
        body[continuation.why] = call(continuation)
    body["untrusted"] = True
    return body


def window(read: FieldRead) -> dict[str, Any]:
    """The text of a window and its position."""
    return {
        "text": read.text,
        "start_chars": read.start,
        "end_chars": read.end,
        "total_chars": read.total,
        "limit_chars": read.limit,
        "complete": read.complete,
        "has_more": read.end < read.total,
    }


def aggregate(found: Buckets) -> dict[str, Any]:
    """`{data}`: the aggregation, with the call for further groups."""
    data = aggregation(found)
    if found.next_cursor is None:
        data.pop("next_cursor", None)
    if continuations := found.continuations():
        data["next"] = [call(continuation) for continuation in continuations]
    if found.ended_early:
        data["ended_early"] = True
    return {"data": data}


def aggregation(found: Buckets) -> dict[str, Any]:
    """A figure or a page of groups as REST gives it."""
    data: dict[str, Any] = {
        "object": "aggregation",
        "stream": found.stream,
        "metric": found.metric,
        "field": found.field,
        "group_by": found.group_by,
        "group_by_time": found.group_by_time,
        "granularity": found.granularity,
        "time_zone": found.time_zone,
        "approximate": found.approximate,
        "filtered_record_count": found.filtered_record_count,
    }
    if found.groups is None:
        data["value"] = found.value
    else:
        data["groups"] = [member(group) for group in found.groups]
        counts = {
            "limit": found.limit,
            "other_count": found.other_count,
            "group_count": found.group_count,
        }
        data |= known(counts)
        data["next_cursor"] = found.next_cursor
    data["meta"] = {"count": {"kind": "none"}, "warnings": [*found.warnings]}
    return data


def member(group: Group) -> dict[str, Any]:
    """One group as JSON."""
    return {"key": group.key, "count": group.count}


def failure(error: EvidenceError) -> dict[str, Any]:
    """`{error}` with the calls that would work instead."""
    body = error.body()
    if error.calls:
        body["next"] = [call(continuation) for continuation in error.calls]
    return {"error": body}


def absolute(base_url: str, path: str) -> str:
    """The public address of a REST path; empty if no public URL is known."""
    if path.startswith(("http://", "https://")):
        return path
    return base_url + path if base_url and path else ""


@lru_cache(maxsize=512)
def source_of(source: Source) -> dict[str, Any]:
    """The source as JSON; shared, so never to be changed."""
    named = {
        "connection_id": source.connection_id,
        "connector_key": source.connector_key,
        "display_name": source.display_name and clip(source.display_name, BUDGETS.label_chars),
    }
    return known(named)


def paged(
    data: dict[str, Any], continuations: list[Continuation], ended_early: bool
) -> dict[str, Any]:
    if continuations:
        data["next"] = [call(continuation) for continuation in continuations]
    if ended_early:
        data["ended_early"] = True
    return known(data)
