"""Search in two steps: the best full-text rows inside the grant, then windows of the page."""

from collections.abc import Iterable, Sequence
from typing import Any

from evidence import query as queries
from evidence.envelope import SearchEnvelope
from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from evidence.query import Query
from service.records.sqlite.snapshot import SqliteSnapshot as Snapshot
from service.cursors import Sealer
from service.ports import SearchQuery
from service.records import zero_hits, ranking, lists
from service.records.sqlite.ddl import SEQ_BITS, SEQ_MASK
from service.records.filters import tests_of
from service.records.hits import Found, prove_page
from service.records.view import StreamView, View

DEEPEST_OFFSET = 10_000


def search(snapshot: Snapshot, view: View, request: SearchQuery, sealer: Sealer) -> SearchEnvelope:
    """A page of hits with their proven windows, as the PDPP search envelope."""
    query = _parse(request.query)
    streams = _streams(view, request)
    bound = [view.grant.grant_id, *request.identity()]
    offset = int(sealer.open(request.cursor, bound=bound)) if request.cursor else 0
    lists.require_shared(view, streams, request.filter, "filter")
    filters = {}
    if request.filter:
        filters = {
            stream.id: stream.selection(tests_of(stream, request.filter)) for stream in streams
        }
    scope = ranking.scope_of(snapshot, view, streams, filters)
    wanted = offset + request.limit + 1
    ranked = ranking.rank(snapshot, scope, query, wanted * max(1, scope.widest))

    found = _merge(ranked.rows, scope.ordinals)
    page = found[offset : offset + request.limit]
    more = len(found) > offset + request.limit
    reachable = offset + request.limit < DEEPEST_OFFSET
    hits = prove_page(snapshot, view, page, query, ranked.wanted, offset)
    head: dict[str, Any] = {
        "object": "list",
        "url": "/v1/search",
        "has_more": more,
        "data": [],
        "meta": _meta(ranked, found, scope.sources, deep=more and not reachable),
    }
    if not found and not offset and (words := zero_hits.look(snapshot, scope, query)):
        head["meta"]["words"] = words
    if more and reachable:
        head["next_cursor"] = sealer.seal(offset + request.limit, bound=bound)
    return SearchEnvelope(head, hits.typed, hits.rows)


def _parse(text: str) -> Query:
    query = queries.parse(text)
    if not query.wanted:
        raise InvalidRequest(
            "The query has no word to look for. Give at least one word, phrase or emoji; "
            "words with a leading minus only exclude.",
            param="query",
        )
    return query


def _streams(view: View, request: SearchQuery) -> Sequence[StreamView]:
    """The granted streams a search covers; 403 for a stream name outside the grant."""
    streams: Sequence[StreamView] = view.within(request.connection_id)
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


def _meta(
    ranked: ranking.Ranked, found: Sequence[Found], sources: int, deep: bool
) -> dict[str, Any]:
    partial = ranked.bounded or bool(ranked.cut)
    recall: dict[str, Any] = {
        "complete": not partial,
        "ranking_scope": "candidate_window" if ranked.bounded else "all_matches",
        "truncated": partial,
        "sources_searched_count": sources,
    }
    warnings = []
    if ranked.bounded:
        recall["candidate_window_limit"] = BUDGETS.rank_newest
    if ranked.cut:
        typed = ", ".join(term.typed for term in ranked.cut)
        warnings.append(
            _partial(
                f"Too many different words match {typed}: "
                "only the shortest were searched for. Type more letters."
            )
        )
    if deep:
        warnings.append(_partial(f"Paging ends after {DEEPEST_OFFSET} hits. Narrow the query."))
    return {
        "count": len(found),
        "count_accuracy": "exact" if ranked.exhausted and not partial else "lower_bound",
        "recall": recall,
        "warnings": warnings,
    }


def _partial(message: str) -> dict[str, str]:
    return {"code": "partial_results", "message": message}
