"""Searches another server: one query as typed, and narrower ones on request.

    where did the quorum meet      as typed; then: quorum meet · quorum · meet

Their hits form one list, ordered by the coverage that their windows prove. A cursor identifies the
searches of the list, so that every page comes from the same list.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import orjson

from evidence.errors import EvidenceError, InvalidRequest, TooLarge
from evidence.fold import fold
from evidence.hits import Counts, Hit, SearchPage
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import distinct
from evidence.proven import Judge, Order, languages_of
from evidence.question import find_period, parse, spelling
from evidence.ranking import TAIL
from service.keys import identity
from service.pdpp.brackets import Pair, arguments_of, parameters
from service.pdpp.decode import object_of, search as decode
from service.ports import SEARCH_EXTENSIONS, Answer, SearchQuery
from service.sources.remote import bodies, refusals
from service.sources.remote.origin import OriginClient

_CURSOR: Final = re.compile(r"~(\d{1,3})\.(\d)\.(\d{1,4})\.([0-9a-f]{8})")


class ListPosition(NamedTuple):
    """A position in a list: `size` hits of each search, and the number of `narrower` searches."""

    size: int
    narrower: int
    offset: int = 0


def helps(query: SearchQuery, page: SearchPage) -> bool:
    """True if the page has all hits of the query, and fewer words may find more."""
    if not query.widen or query.cursor or query.words != "any" or query.sort != "relevance":
        return False
    return not page.has_more and len(page.hits) < query.limit


def queries(text: str) -> list[str]:
    """At most three queries with fewer words than a text, narrowest first; none for a single word.

    Names and long words are dropped last, because rarity at the source is unknown. Required
    parts, such as quotes, stay in all of them.
    """
    question = parse(text, languages_of(text))
    words = [spelling(word) for word in question.words]
    by_worth = sorted(dict.fromkeys(words), key=_worth_of_words(text), reverse=True)
    chosen = [words, by_worth[:2], *([word] for word in by_worth)] if words else []
    required = [part.term.typed for part in question.required]
    original = sorted(fold(text).split())
    narrower = dict[str, None]()
    for selection in chosen:
        pieces = [*(word for word in words if word in selection), *required]
        if sorted(fold(" ".join(pieces)).split()) != original:
            narrower[" ".join(pieces)] = None
    return list(narrower)[: BUDGETS.narrower_searches]


def pooled(text: str, pages: Sequence[SearchPage]) -> list[Hit]:
    """The hits of the search as typed and of narrower ones, each once, best first.

    A hit of a narrower search must prove that it contains a word.
    """
    judge, best = Judge(text), dict[tuple[str, ...], tuple[Order, int, Hit]]()
    for number, page in enumerate(pages):
        for hit in page.hits:
            order, judged = judge.judged(hit)
            if number and not (judged.matches and judged.coverage):
                continue
            previous = best.get(_identity(hit))
            if previous is None or order < previous[0]:
                best[_identity(hit)] = order, number, judged
    # Equal hits keep their order.
    ranked = sorted(best.values(), key=lambda entry: entry[:2])
    return [replace(hit, rank=rank) for rank, (_, _, hit) in enumerate(ranked, start=1)]


def pooled_page(
    query: SearchQuery, position: ListPosition, pages: Sequence[SearchPage], narrower: Sequence[str]
) -> SearchPage:
    """The page of the list at a position; `narrower` are its narrower queries."""
    ranked = pooled(query.query, pages)
    stop = position.offset + query.limit
    has_next = stop < len(ranked)
    some = max([len(ranked), *(page.counts.some for page in pages if page.counts)])
    warning = {
        "code": "narrower_searches",
        "message": "This source requires every word, and few records contain all of them. Rung "
        "also searched for: "
        + ", ".join(narrower)
        + ". Hits are ordered by the words that their excerpts show.",
    }
    return SearchPage(
        args={},
        hits=ranked[position.offset : stop],
        has_more=has_next,
        next_cursor=cursor(query, position._replace(offset=stop)) if has_next else None,
        counts=Counts(None, some, False),
        recall={
            "complete": False,
            "ranking_scope": "candidate_window",
            "truncated": True,
            "narrower_searches": list(narrower),
        },
        warnings=[*distinct(warning for page in pages for warning in page.warnings), warning],
        as_of=pages[0].as_of,
    )


def cut(query: SearchQuery, position: ListPosition, page: SearchPage) -> SearchPage:
    """The first page without the hits at its end that cover far less of the question.

    A source may report where that is. Others send no scores, so the coverage of the hits is used
    instead. A source may rank by other criteria, so hits of low coverage before a better one stay.
    """
    if tail := page.tail:
        hits, end = page.hits[: tail.hits], tail.next_cursor
        return replace(page, hits=hits, has_more=True, next_cursor=end, tail_cut=True, tail=None)
    judge = Judge(query.query)
    covered = [judge.coverage(hit) for hit in page.hits]
    if not covered or covered[0] is None:
        return page
    least = TAIL * covered[0]
    good = (
        number
        for number, coverage in enumerate(covered, start=1)
        if coverage is None or coverage >= least
    )
    hit_count = max(CONTRACT.full_hits, *good)
    if hit_count >= len(covered):
        return page
    return replace(
        page,
        hits=page.hits[:hit_count],
        has_more=True,
        next_cursor=cursor(query, position._replace(offset=hit_count)),
        tail_cut=True,
    )


def rest(query: SearchQuery, position: ListPosition, source_page: SearchPage) -> SearchPage:
    """The hits of a source's page after those that a cut page has shown."""
    ranked = [replace(hit, rank=hit.rank or rank) for rank, hit in enumerate(source_page.hits, 1)]
    stop = position.offset + query.limit
    page = replace(source_page, hits=ranked[position.offset : stop])
    if stop >= len(ranked):
        return page
    following = cursor(query, position._replace(offset=stop))
    return replace(page, has_more=True, next_cursor=following)


def cursor(query: SearchQuery, position: ListPosition) -> str:
    """The cursor of a position in the list of a query."""
    return f"~{position.size}.{position.narrower}.{position.offset}.{_bounds(query)[0]}"


def opened(query: SearchQuery) -> ListPosition | None:
    """The position of a cursor; None for cursors of the source itself."""
    match = _CURSOR.fullmatch(query.cursor or "")
    if match is None:
        return None
    if match[4] not in _bounds(query):
        raise InvalidRequest(
            "This cursor is not valid for this call. Send it exactly as it was returned, with "
            "the same arguments, or leave it out to start over.",
            code="invalid_cursor",
            param="cursor",
        )
    return ListPosition(int(match[1]), int(match[2]), int(match[3]))


def _bounds(query: SearchQuery) -> list[str]:
    """What a cursor is bound to; the first is that of new cursors."""
    raws = (orjson.dumps(bound, option=orjson.OPT_SORT_KEYS) for bound in identity(query))
    return [hashlib.blake2b(raw, digest_size=4).hexdigest() for raw in raws]


def _worth_of_words(text: str) -> Callable[[str], tuple[bool, bool, int]]:
    """A sort key for the likely value of a word in a text: dates lowest, names highest."""
    outside = fold(find_period(text)[1]).split()
    first = next(iter(text.split()), "")

    def worth(word: str) -> tuple[bool, bool, int]:
        is_name = word[:1].isupper() and not first.startswith(word)
        return fold(word) in outside, is_name, len(word)

    return worth


def _identity(hit: Hit) -> tuple[str, ...]:
    return hit.ref.connection_id or "", hit.ref.stream, hit.ref.record_id


Body = dict[str, Any]


def search(client: OriginClient, query: SearchQuery) -> Answer[SearchPage]:
    """The page of a query; raises `InvalidRequest` (`unsupported_by_source`).

    With `widen`, narrower queries are also sent to a source that has few hits.
    """
    extra, warnings = _extra(client, query)
    position = opened(query)
    if position is not None:
        return _reopened(client, query, extra, position)
    body = _search_body(client, query, extra)
    for warning in warnings:
        body = bodies.warned(body, **warning)
    body = bodies.bounded(body)
    page = decode.within(decode.read(body), query.query)
    # A source that counts the records with some of the words has searched for each word.
    if "counts" not in object_of(body, "meta") and helps(query, page):
        widened = _widened(client, query, extra, page)
        if widened is not None:
            return widened
    if query.cut_tail and query.cursor is None and query.sort == "relevance":
        page = cut(query, ListPosition(query.limit, 0), page)
    return Answer(page, body)


def _widened(
    client: OriginClient, query: SearchQuery, extra: list[Pair], first_page: SearchPage
) -> Answer[SearchPage] | None:
    """The page with the hits of narrower searches, as far as time allows."""
    client = replace(
        client, deadline=client.deadline.share(BUDGETS.narrower_share, most=BUDGETS.source_seconds)
    )
    pages, narrower = [first_page], list[str]()
    for text in queries(query.query):
        try:
            pages.append(_page(client, replace(query, query=text), extra))
        except EvidenceError:
            break
        narrower.append(text)
        if len(pooled(query.query, pages)) >= query.limit:
            break
    if not narrower:
        return None
    position = ListPosition(query.limit, len(narrower))
    page = pooled_page(query, position, pages, narrower)
    if query.cut_tail:
        page = cut(query, position, page)
    return Answer(page, reopen=cursor(query, position))


def _reopened(
    client: OriginClient, query: SearchQuery, extra: list[Pair], position: ListPosition
) -> Answer[SearchPage]:
    """Another page of the same searches; fails if one of them does."""
    first = replace(query, cursor=None, limit=position.size)
    if not position.narrower:
        return Answer(rest(query, position, _page(client, first, extra)), reopen=query.cursor)
    narrower = queries(query.query)[: position.narrower]
    pages = [_page(client, replace(first, query=text), extra) for text in (query.query, *narrower)]
    return Answer(pooled_page(query, position, pages, narrower), reopen=query.cursor)


def _page(client: OriginClient, query: SearchQuery, extra: list[Pair]) -> SearchPage:
    page = decode.read(bodies.bounded(_search_body(client, query, extra)))
    return decode.within(page, query.query)


def _search_body(client: OriginClient, query: SearchQuery, extra: list[Pair]) -> Body:
    """The body of one search; raises errors with an explanation."""
    params = [*arguments_of(query, *SEARCH_EXTENSIONS), *extra]
    try:
        body = client.read("/v1/search", params)
    except TooLarge as error:
        error.hint = error.hint or "Request fewer hits with limit."
        raise
    except EvidenceError as error:
        raise refusals.of_filter(error, query.filter)
    return bodies.hits(body, query)


def _extra(client: OriginClient, query: SearchQuery) -> tuple[list[Pair], list[Body]]:
    """The arguments beyond PDPP, and a warning about omitted ones."""
    used = {name: value for name, value in query.changed().items() if name in SEARCH_EXTENSIONS}
    if not used:
        return [], []
    declared = client.search_extensions()
    unknown = [name for name in used if name not in declared]
    for name in unknown:
        if name not in ("words", "mode"):  # a server without modes searches by words
            raise refusals.of_argument(name, query)
    taken = {name: value for name, value in used.items() if name in declared}
    return parameters(**taken), [refusals.WORDS] if "words" in unknown else []
