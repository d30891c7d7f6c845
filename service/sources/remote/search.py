"""Search at another server: one query as typed, and narrower ones on request."""

from dataclasses import replace
from typing import Any

from evidence.errors import EvidenceError, TooLarge
from evidence.hits import SearchPage
from evidence.limits import BUDGETS
from service.pdpp.brackets import Pair, filter_pairs, parameters
from service.pdpp.decode import object_of
from service.pdpp.decode import search as decode
from service.ports import Answer, SearchQuery
from service.sources.remote import bodies, narrower, notices, refusals
from service.sources.remote.narrower import Place
from service.sources.remote.origin import Line

Body = dict[str, Any]
#: The values that equal leaving an argument out.
_DEFAULTS = {"since": None, "until": None, "sort": "relevance", "words": "any"}


def search(line: Line, query: SearchQuery) -> Answer[SearchPage]:
    """The page of a query; raises `InvalidRequest` (`unsupported_by_source`).

    With `widen` a source that has few hits is asked narrower queries, too.
    """
    extra, warnings = _extra(line, query)
    place = narrower.opened(query)
    if place is not None:
        return _reopened(line, query, extra, place)
    body = _asked(line, query, extra)
    for warning in warnings:
        body = notices.warned(body, **warning)
    body = notices.bounded(body)
    found = decode.within(decode.read(body), query.query)
    # A source that counts the records with some of the words has searched for each word.
    if "counts" not in object_of(body, "meta") and narrower.helps(query, found):
        widened = _widened(line, query, extra, found)
        if widened is not None:
            return widened
    if query.cut_tail and query.cursor is None and query.sort == "relevance":
        found = narrower.cut(query, Place(query.limit, 0), found)
    return Answer(found, body)


def _widened(
    line: Line, query: SearchQuery, extra: list[Pair], found: SearchPage
) -> Answer[SearchPage] | None:
    """The page with the hits of narrower searches, as far as time allows."""
    line = replace(
        line, deadline=line.deadline.share(BUDGETS.narrower_share, most=BUDGETS.source_seconds)
    )
    pages, asked = [found], list[str]()
    for text in narrower.queries(query.query):
        try:
            pages.append(_page(line, replace(query, query=text), extra))
        except EvidenceError:
            break
        asked.append(text)
        if len(narrower.pooled(query.query, pages)) >= query.limit:
            break
    if not asked:
        return None
    place = Place(query.limit, len(asked))
    page = narrower.page(query, place, pages, asked)
    if query.cut_tail:
        page = narrower.cut(query, place, page)
    return Answer(page, reopen=narrower.cursor(query, place))


def _reopened(
    line: Line, query: SearchQuery, extra: list[Pair], place: Place
) -> Answer[SearchPage]:
    """A further page of the same searches; fails if one of them does."""
    first = replace(query, cursor=None, limit=place.size)
    if not place.narrower:
        return Answer(narrower.rest(query, place, _page(line, first, extra)), reopen=query.cursor)
    asked = narrower.queries(query.query)[: place.narrower]
    pages = [_page(line, replace(first, query=text), extra) for text in (query.query, *asked)]
    return Answer(
        narrower.page(query, place, pages, asked),
        reopen=query.cursor,
    )


def _page(line: Line, query: SearchQuery, extra: list[Pair]) -> SearchPage:
    found = decode.read(notices.bounded(_asked(line, query, extra)))
    return decode.within(found, query.query)


def _asked(line: Line, query: SearchQuery, extra: list[Pair]) -> Body:
    """The body of one search; errors come explained."""
    params = [
        *parameters(
            q=query.query,
            streams=query.streams,
            connection_id=query.connection_id,
            limit=query.limit,
            cursor=query.cursor,
        ),
        *filter_pairs(query.filter),
        *extra,
    ]
    try:
        body = line.read("/v1/search", params)
    except TooLarge as error:
        error.hint = error.hint or "Request fewer hits with limit."
        raise
    except EvidenceError as error:
        raise refusals.of_filter(error, query.filter)
    return bodies.hits(body, query)


def _extra(line: Line, query: SearchQuery) -> tuple[list[Pair], list[Body]]:
    """The arguments beyond PDPP, and a warning about those that are left out."""
    given = {name: getattr(query, name) for name in _DEFAULTS}
    used = {name: value for name, value in given.items() if value != _DEFAULTS[name]}
    if not used:
        return [], []
    declared = line.origin.declared.arguments(lambda path: line.read(path, []))
    unknown = [name for name in used if name not in declared]
    for name in unknown:
        if name != "words":
            raise refusals.of_argument(name, query)
    taken = {name: value for name, value in used.items() if name in declared}
    return parameters(**taken), [refusals.WORDS] if unknown else []
