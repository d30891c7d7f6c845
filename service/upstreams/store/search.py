"""Search in two steps: the best full-text rows inside the grant, then windows of the page."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evidence import pointer
from evidence import query as queries
from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from evidence.query import Query
from service.upstreams import routes
from service.upstreams.cursors import Sealer
from service.upstreams.ports import SearchQuery
from service.upstreams.store import alone, documents, matching, records
from service.upstreams.store.ddl import SEQ_BITS, SEQ_MASK
from service.upstreams.store.filters import compile_filter
from service.upstreams.store.proof import Proof, prove
from service.upstreams.store.visible import StreamView, View

DEEPEST_OFFSET = 10_000


@dataclass(slots=True)
class Found:
    """A record of the page: its best score and the fields that matched, best first."""

    seq: int
    score: float
    ordinals: list[int] = field(default_factory=list)


def search(
    db: sqlite3.Connection, view: View, request: SearchQuery, sealer: Sealer
) -> dict[str, Any]:
    """A page of hits with their proven windows, as the PDPP search envelope."""
    query = _parse(request.query)
    streams = _streams(view, request)
    bound: list[Any] = ["search", view.grant.grant_id, request.query, request.streams]
    bound += [request.connection_id, request.filter]
    offset = int(sealer.open(request.cursor, bound=bound)) if request.cursor else 0
    records.require_shared(view, streams, request.filter, "filter")
    filters = {s.id: compile_filter(db, s, request.filter) for s in streams if request.filter}
    scope = matching.scope_of(db, streams, filters)
    wanted = offset + request.limit + 1
    widest = max((len(stream.searchable) for stream in streams), default=1) or 1
    ranked = matching.rank(db, scope, query, wanted * widest)

    found = _merge(ranked.rows, scope.ordinals)
    page = found[offset : offset + request.limit]
    more = len(found) > offset + request.limit
    reachable = offset + request.limit < DEEPEST_OFFSET
    body: dict[str, Any] = {
        "object": "list",
        "url": "/v1/search",
        "has_more": more,
        "data": _hits(db, view, page, query, offset),
        "meta": _meta(ranked, found, streams, deep=more and not reachable),
    }
    if not found and not offset and (words := alone.look(db, scope, query)):
        body["meta"]["words"] = words
    if more and reachable:
        body["next_cursor"] = sealer.seal(offset + request.limit, bound=bound)
    return body


def _parse(text: str) -> Query:
    query = queries.parse(text)
    if not query.wanted:
        raise InvalidRequest(
            "The query has no word to look for. Give at least one word, phrase or emoji; "
            "words with a leading minus only exclude.",
            param="query",
        )
    return query


def _streams(view: View, request: SearchQuery) -> list[StreamView]:
    """The granted streams a search covers; 403 for a stream name outside the grant."""
    streams = list(view.within(request.connection_id))
    if request.streams:
        names = dict.fromkeys(request.streams)
        named = (view.stream(name, request.connection_id, param="streams") for name in names)
        streams = [stream for group in named for stream in group]
    if request.filter and len({stream.name for stream in streams}) != 1:
        raise InvalidRequest(
            "A filter in search needs exactly one stream. Retry with streams naming one stream.",
            code="invalid_filter",
            param="filter",
            retry_with="streams",
        )
    return streams


def _merge(rows: Iterable[tuple[int, float]], allowed: frozenset[int]) -> list[Found]:
    """One entry per record, in the order of its best row."""
    found: dict[int, Found] = {}
    for rowid, score in rows:
        seq, ordinal = rowid & SEQ_MASK, rowid >> SEQ_BITS
        if ordinal not in allowed:  # the grant, checked once more outside SQL
            continue
        entry = found.get(seq)
        if entry is None:
            entry = found[seq] = Found(seq, score)
        entry.ordinals.append(ordinal)
    return list(found.values())


def _hits(
    db: sqlite3.Connection,
    view: View,
    page: Sequence[Found],
    query: Query,
    offset: int,
) -> list[dict[str, Any]]:
    stored = documents.load(db, [found.seq for found in page])
    proven = []
    for found in page:
        stream, record = view.owners[found.ordinals[0]], stored[found.seq]
        fields = [stream.searchable[ordinal] for ordinal in found.ordinals]
        proofs = prove(db, record, fields, query)
        proven.append((found.score, _tightness(proofs), stream, record, fields, proofs))
    # Equal scores only: the tightest span wins; everything else keeps its rank.
    proven.sort(key=lambda hit: hit[:2])
    return [
        _hit(stream, record, fields, proofs, query.text, rank)
        for rank, (_, _, stream, record, fields, proofs) in enumerate(proven, start=offset + 1)
    ]


def _tightness(proofs: Sequence[Proof]) -> int:
    return min((proof.match_end - proof.match_start for proof in proofs), default=1 << 31)


def _hit(
    stream: StreamView,
    record: documents.Stored,
    fields: Sequence[str],
    proofs: Sequence[Proof],
    query: str,
    rank: int,
) -> dict[str, Any]:
    where = f"connection_id={routes.segment(stream.connection_id)}"
    hit: dict[str, Any] = {
        "object": "search_result",
        "stream": stream.name,
        "record_key": record.record_key,
        "connector_id": stream.connector_key,
        "connector_key": stream.connector_key,
        "emitted_at": record.emitted_at(stream.granted),
        "record_url": f"{routes.record(stream.name, record.record_key)}?{where}",
        **stream.source,
        "matched_fields": list(fields),
        "score": {"kind": "rank", "value": rank, "order": "lower_is_better"},
    }
    if title := records.title_of(stream, record):
        hit["title"] = title
    if at := records.time_of(stream, record, stream.granted):
        hit["authored_at"] = at
    if proofs:
        hit["snippet"] = {"field": proofs[0].field, "text": proofs[0].preview}
    hit["evidence_excerpts"] = [_excerpt(stream, record, proof, query) for proof in proofs]
    return hit


def _excerpt(
    stream: StreamView, record: documents.Stored, proof: Proof, query: str
) -> dict[str, Any]:
    window = proof.read_arguments(query)
    read = routes.field_window_read(
        stream.name, record.record_key, stream.connection_id, proof.field, **window
    )
    return {
        "object": "evidence_excerpt",
        "field_path": pointer.path_of(proof.field),
        "preview_text": proof.preview,
        "provenance": "lexical_match",
        "truncated": proof.start > 0 or proof.end < proof.total,
        "start_chars": proof.start,
        "end_chars": proof.end,
        "total_chars": proof.total,
        "match_start_chars": proof.match_start,
        "match_end_chars": proof.match_end,
        "read": read,
    }


def _meta(
    ranked: matching.Ranked, found: Sequence[Found], streams: Sequence[StreamView], deep: bool
) -> dict[str, Any]:
    recall: dict[str, Any] = {
        "complete": not ranked.bounded,
        "ranking_scope": "candidate_window" if ranked.bounded else "all_matches",
        "truncated": ranked.bounded,
        "sources_searched_count": len({stream.connection_id for stream in streams}),
    }
    warnings = []
    if ranked.bounded:
        recall["candidate_window_limit"] = BUDGETS.rank_cap
    if deep:
        warnings.append(
            {
                "code": "partial_results",
                "message": f"Paging ends after {DEEPEST_OFFSET} hits. Narrow the query.",
            }
        )
    return {
        "count": len(found),
        "count_accuracy": "exact" if ranked.exhausted and not ranked.bounded else "lower_bound",
        "recall": recall,
        "warnings": warnings,
    }
