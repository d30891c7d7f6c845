"""Typed readings -> the JSON of MCP `structuredContent`. The text channel says the same.

Calls are `{"tool": …, "args": {…}, "why": …}`. `untrusted` stands wherever record text stands.
"""

from functools import lru_cache
from typing import Any

from evidence import pointer
from evidence.binary import Bytes
from evidence.continuation import Continuation
from evidence.errors import EvidenceError
from evidence.limits import CONTRACT
from evidence.model import (
    Buckets,
    Document,
    FanIn,
    FieldRead,
    Hit,
    Match,
    Partial,
    RecordItem,
    RecordPage,
    SearchPage,
    Source,
    SourceReport,
)
from evidence.text import json_line


def call(continuation: Continuation) -> dict[str, Any]:
    """A call as data."""
    return {"tool": continuation.operation, "args": continuation.args, "why": continuation.why}


def spelled(continuation: Continuation) -> str:
    """A call as one line: tool name, space, JSON."""
    return f"{continuation.operation} {json_line(continuation.args)}"


def bytes_line(found: Bytes) -> str:
    """How an HTTP client gets the bytes, or that they are not there."""
    if found.route is None:
        return "not stored here: only this metadata was imported. Ask the owner for the bytes."
    what = f" ({pointer.top_level(found.field_path)} is base64)" if found.is_base64 else ""
    return f"HTTP GET {json_line(found.route)} with the same bearer token{what}"


def bytes_of(found: Bytes) -> dict[str, Any]:
    """A blob or base64 text as data: its field, and what is known of it."""
    named = ("blob_id", "encoding", "mime_type", "size_bytes", "fetch_url", "available")
    return {"field_path": found.field_path} | {
        name: found.known[name] for name in named if name in found.known
    }


def search(page: SearchPage, *, base_url: str = "") -> dict[str, Any]:
    """`{data, results, content_ladder}`; the hits stand in `results` only."""
    data: dict[str, Any] = {
        "object": "list",
        "has_more": page.has_more,
        "next_cursor": page.next_cursor,
        "meta": {
            "count": page.count,
            "count_accuracy": page.count_accuracy,
            "recall": page.recall,
            "warnings": page.warnings,
        },
    }
    if page.words:
        told = {"found": page.words.found, "missing": page.words.missing, "query": page.words.query}
        data["meta"]["words"] = {name: one for name, one in told.items() if one is not None}
    if page.fan_in:
        data["meta"]["package"] = _fan_in(page.fan_in)
    return {
        "data": _paged(data, page.continuations(), page.ended_early),
        "results": [_result(hit, base_url) for hit in page.hits],
        "content_ladder": {
            "kind": "search_results",
            "read_tool": "read_record_field",
            "records": [_rung(hit) for hit in page.hits],
        },
        "untrusted": True,
    }


def _fan_in(found: FanIn) -> dict[str, Any]:
    """Who answered: the numbers, and the sources with hits and without an answer, 12 each."""
    listed = [source for source in found.of("answered") if source.hits][: CONTRACT.candidates]
    return {
        "member_count": found.members,
        "waiting_count": found.waiting,
        "answered_count": len(found.of("answered")),
        "failed_count": len(found.of("failed")),
        "timed_out_count": len(found.of("timed_out")),
        "sources": [_report(one) for one in listed + found.silent[: CONTRACT.candidates]],
    }


def _report(source: SourceReport) -> dict[str, Any]:
    shown = {"name": source.name, "state": source.state, "hits": source.hits}
    more = {
        "grant_id": source.grant_id,
        "code": source.code,
        "message": source.message,
        "next_step": source.next_step,
    }
    return shown | {name: value for name, value in more.items() if value is not None}


def _result(hit: Hit, base_url: str) -> dict[str, Any]:
    result = {
        "id": hit.id,
        "title": title(hit),
        "url": absolute(base_url, hit.url),
        **_source(hit.source),
        "stream": hit.ref.stream,
        "record_id": hit.ref.record_id,
    }
    if hit.at:
        result["at"] = hit.at
    if hit.matched_fields:
        result["matched_fields"] = hit.matched_fields
    if hit.matches:
        result["evidence_preview"] = hit.matches[0].shown
    return result


def _rung(hit: Hit) -> dict[str, Any]:
    if not hit.matches:
        return {"id": hit.id, "fetch": call(hit.fetch)}
    return {
        "id": hit.id,
        "evidence_preview": hit.matches[0].shown,
        "evidence": [_evidence(match) for match in hit.matches],
    }


def _evidence(match: Match) -> dict[str, Any]:
    found: dict[str, Any] = {"field_path": match.field_path, "preview_text": match.shown}
    if match.start is not None:
        found["start_chars"], found["end_chars"] = match.start, match.end
        found["total_chars"] = match.total
    if match.match_start is not None:
        found["match_start_chars"] = match.match_start
        found["match_end_chars"] = match.match_end
    found["complete"] = match.complete
    found["read"] = call(match.read)
    return found


def title(hit: Hit) -> str:
    """A hit's own title, else what it is: `label · stream · time`."""
    return hit.title or " · ".join(p for p in (hit.source.label, hit.ref.stream, hit.at) if p)


def records(page: RecordPage) -> dict[str, Any]:
    """`{data, content_ladder}`: the list envelope with its records, and how to read their rest."""
    data = {
        "object": "list",
        "has_more": page.has_more,
        "next_cursor": page.next_cursor,
        "next_changes_since": page.next_changes_since,
        "meta": {"count": page.count, "warnings": page.warnings},
        "data": [record(item) for item in page.records],
    }
    return {
        "data": _paged(data, page.continuations(), page.ended_early),
        "content_ladder": {
            "kind": "record_set",
            "read_tool": "read_record_field",
            "records": [record_rung(item) for item in page.records],
        },
        "untrusted": True,
    }


def record(item: RecordItem) -> dict[str, Any]:
    """One record of `data.data`."""
    shown = {**item.envelope}
    if not item.deleted:
        shown["data"] = item.data
    return shown


def record_rung(item: RecordItem) -> dict[str, Any]:
    """One record of `content_ladder.records`: which fields go on, and how."""
    rung: dict[str, Any] = {"id": item.id}
    if item.bytes:
        rung["bytes"] = [bytes_of(one) for one in item.bytes]
    if item.partial:
        rung["fields"] = [_partial(part) for part in item.partial]
    if rest := item.rest():
        rung["left_out"] = len(item.left_out)
        rung["next"] = call(rest)
    if item.related:
        rung["related"] = [call(one) for one in item.related]
    return rung


def _partial(part: Partial) -> dict[str, Any]:
    sizes = {} if part.total is None else {"shown_chars": part.end, "total_chars": part.total}
    return {"field_path": part.field_path, **sizes, "read": call(part.read)}


def document(found: Document, *, base_url: str = "") -> dict[str, Any]:
    """Exactly `id, title, text, url, metadata`; what was cut is read on by `metadata.next_read`."""
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

    `warnings` stand there where there are any.
    """
    body: dict[str, Any] = {
        "record": {
            "id": read.id,
            **_source(read.source),
            "stream": read.ref.stream,
            "record_id": read.ref.record_id,
        },
        "field": {"path": read.field_path, "type": read.type},
    }
    if read.media_type:
        body["field"]["media_type"] = read.media_type
    if read.warnings:
        body["warnings"] = read.warnings
    if read.binary is not None:
        body["binary"] = read.binary
        return body
    window: dict[str, Any] = {
        "text": read.text,
        "start_chars": read.start,
        "end_chars": read.end,
        "total_chars": read.total,
        "limit_chars": read.limit,
        "complete": read.complete,
        "has_more": read.end < read.total,
    }
    if read.match_start is not None:
        window["match_start_chars"] = read.match_start
        window["match_end_chars"] = read.match_end
    if read.match is not None:
        window["match"] = read.match
    body["window"] = window
    for continuation in read.continuations():
        body[continuation.why] = call(continuation)
    body["untrusted"] = True
    return body


def aggregate(found: Buckets) -> dict[str, Any]:
    """`{data}`: the aggregation as it was answered, with the call for further groups."""
    data = {key: value for key, value in found.envelope.items() if key != "links"}
    if data.get("next_cursor", "") is None:
        del data["next_cursor"]
    if continuations := found.continuations():
        data["next"] = [call(continuation) for continuation in continuations]
    if found.ended_early:
        data["ended_early"] = True
    return {"data": data}


def failure(error: EvidenceError) -> dict[str, Any]:
    """`{error}` with the calls that would work instead."""
    body = error.body()
    if error.calls:
        body["next"] = [call(continuation) for continuation in error.calls]
    return {"error": body}


def absolute(base_url: str, path: str) -> str:
    """The public address of a REST path, or nothing where no public URL is known."""
    if path.startswith(("http://", "https://")):
        return path
    return base_url + path if base_url and path else ""


@lru_cache(maxsize=512)
def _source(source: Source) -> dict[str, Any]:
    """Which connection it is, for others to take in: shared, so never to be changed."""
    named = {
        "connection_id": source.connection_id,
        "connector_key": source.connector_key,
        "display_name": source.display_name,
    }
    return {name: value for name, value in named.items() if value is not None}


def _paged(
    data: dict[str, Any], continuations: list[Continuation], ended_early: bool
) -> dict[str, Any]:
    if continuations:
        data["next"] = [call(continuation) for continuation in continuations]
    if ended_early:
        data["ended_early"] = True
    return {name: value for name, value in data.items() if value is not None}
