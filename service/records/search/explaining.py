"""Explains a search without hits: names the missing words and a call that has hits."""

from dataclasses import replace
from itertools import islice
from typing import Any

from evidence.errors import InvalidRequest
from evidence.hits import SearchPage
from evidence.limits import CONTRACT
from service.records.search import words
from service.records.search.ranked_blocks import RankedBlocks
from service.records.view import near_values


def explained(search: RankedBlocks, page: SearchPage) -> SearchPage:
    """A page without proven hits, with the missing words and a call that has hits."""
    streams, conditions = search.searched.streams, search.request.filter
    return replace(
        page,
        warnings=[*page.warnings, *near_values.warnings(search.snapshot, streams, conditions)],
        absent_words=words.absent(search.query_groups),
        nearest_words=words.nearest(search.query_groups, search.vocabulary),
        retry=_retry(search),
    )


def _retry(search: RankedBlocks) -> dict[str, Any] | None:
    """Arguments in place of which this search has hits, as a further search shows.

    Fewer words in the same scope come first, then the same words in a wider one, then both.
    """
    less = words.retries(search.question, search.query_groups, every=search.every)
    fewer = list(islice(less, words.RETRIES_MAX))
    wider = list(words.wider(search.request))
    both = [changes | wider[-1] for changes in fewer] if wider else []
    successful = (changes for changes in (*fewer, *wider, *both) if _has_hits(search, changes))
    return next(successful, None)


def _has_hits(search: RankedBlocks, changes: dict[str, Any]) -> bool:
    if len(changes.get("query", "")) > CONTRACT.query_chars:
        return False
    request = words.changed(search.request, changes)
    try:
        return bool(RankedBlocks(search.snapshot, search.view, request).candidates.group_bits)
    except InvalidRequest:  # a filter that does not fit a wider scope
        return False
