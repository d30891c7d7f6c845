"""`SearchPage` -> the PDPP search body, with the additive keys of rank, coverage and words."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from evidence.values import field_window_read
from evidence.hits import FanIn, Hit, Match, SearchPage, counts_json, report_json
from evidence.model import chars, known, members
from service.pdpp import LEFT_OUT, NO_HITS

Body = dict[str, Any]
_REST_NAMES = {"query": "q"}


def encode(page: SearchPage) -> Body:
    """The PDPP body of a page; absent members are left out."""
    body: Body = {
        "object": "list",
        "url": "/v1/search",
        "has_more": page.has_more,
        "data": [_row(hit) for hit in page.hits],
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
    }
    return meta | known(optional)


def _end_warnings(page: SearchPage) -> Iterator[Body]:
    """The end of a page as warnings; REST reports its tail and never cuts it."""
    if page.left_out is not None:
        yield {
            "code": LEFT_OUT,
            "message": f"sort=newest gives one page: {page.left_out} more matching records are "
            "left out. Narrow with since, until or filter to reach them.",
            "detail": {"left_out": page.left_out},
        }
    if page.retry is not None:
        names = {_REST_NAMES.get(name, name): value for name, value in page.retry.items()}
        yield {
            "code": NO_HITS,
            "message": "No results. The search with retry_arguments in place of those given "
            "has hits; null leaves an argument out.",
            "detail": {"retry_arguments": names},
        }


def _package(found: FanIn) -> Body:
    return {
        "member_count": found.members,
        "waiting_count": found.waiting,
        "partial": bool(found.silent),
        "sources": [*map(report_json, found.sources)],
    }


def _row(hit: Hit) -> Body:
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
        **members(hit, "forms", "title", "authored_at"),
    }
    row = known(row)
    if hit.matches:
        first = hit.matches[0]
        row["snippet"] = {"field": first.field_path, "text": first.shown}
    row["evidence_excerpts"] = [_excerpt(hit, match) for match in hit.matches]
    return row


def _excerpt(hit: Hit, match: Match) -> Body:
    excerpt: Body = {
        "object": "evidence_excerpt",
        "field_path": match.field_path,
        "preview_text": match.shown,
        "provenance": "lexical_match",
        "truncated": not match.complete,
        **chars(match, "start", "end", "total", "match_start", "match_end"),
        "read": _read(hit, match),
    }
    return known(excerpt)


def _read(hit: Hit, match: Match) -> Body:
    """The `read` descriptor of a window: its call with REST names."""
    window = {
        "q" if name == "query" else name: value
        for name, value in match.read.args.items()
        if name not in ("id", "field_path")
    }
    ref = hit.ref
    read = field_window_read(ref.stream, ref.record_id, ref.connection_id, "", **window)
    return known({**read, "field": match.field_path})
