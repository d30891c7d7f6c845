"""Answers about papers -> JSON, for MCP `structuredContent` and for REST alike.

The two differ in how a next call is spelled; `Steps` turns calls into the member that holds them:
`as_calls` for MCP, links for REST.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from evidence.model import Continuation
from evidence.papers import (
    Paper,
    PaperFacets,
    PaperFinds,
    PaperHit,
    PaperMatch,
    PaperOutline,
    PaperPage,
    PaperReading,
    PaperText,
)
from evidence.wire import call

Steps = Callable[[list[Continuation]], dict[str, Any]]
Body = dict[str, Any]


def as_calls(found: list[Continuation]) -> Body:
    """`{"calls": […]}` of tool calls; nothing if there are none."""
    return {"calls": [call(each) for each in found]} if found else {}


def page(found: PaperPage, steps: Steps) -> Body:
    """A list of hits."""
    meta: Body = {"offset": found.offset}
    if found.ended_early:
        meta["ended_early"] = True
    if found.did_you_mean:
        meta["did_you_mean"] = found.did_you_mean
    if found.counts is not None:
        counts = found.counts
        meta["counts"] = {"all": counts.all, "some": counts.some, "accuracy": "exact"}
    return {
        "object": "list",
        "data": [_hit(hit, steps) for hit in found.hits],
        "has_more": found.has_more,
        "next_cursor": found.next_cursor,
        "meta": meta,
        **steps(found.continuations()),
        "untrusted": True,
    }


def _hit(hit: PaperHit, steps: Steps) -> Body:
    return {
        "paper_id": hit.paper_id,
        "title": hit.title,
        "year": hit.year,
        "venue": hit.venue,
        "authors": hit.authors,
        "authors_total": hit.authors_total,
        "snippet_markdown": hit.snippet,
        "matched_in": hit.place,
        **({} if hit.match is None else _match(hit.match)),
        **steps(hit.continuations()),
    }


def _match(found: PaperMatch) -> Body:
    return {
        "coverage": found.coverage,
        "matched_words": found.words,
        "missing_words": found.missing,
        "forms": found.forms,
    }


def paper(found: Paper, steps: Steps) -> Body:
    """The metadata of a paper."""
    return {"object": "paper", **asdict(found), **steps(found.continuations()), "untrusted": True}


def _named(kind: str, found: PaperReading) -> Body:
    return {
        "object": kind,
        "paper_id": found.paper_id,
        "title": found.title,
        "lang": found.lang,
        "total_chars": found.total,
    }


def text(found: PaperText, steps: Steps) -> Body:
    """A window of a text. `text` is the window alone, `truncation_marker` what a cut appends."""
    return {
        **_named("paper_text", found),
        "template": found.template,
        "media_type": found.media_type,
        "version": found.version,
        "text": found.text,
        "truncation_marker": found.marker.strip() or None,
        "offset_chars": found.start,
        "end_chars": found.end,
        "complete": found.complete,
        **steps(found.continuations()),
        "untrusted": True,
    }


def finds(found: PaperFinds, steps: Steps) -> Body:
    """The places of a query in a text."""
    return {
        **_named("paper_matches", found),
        "query": found.query,
        "data": [
            {
                "excerpt_markdown": match.shown,
                "start_chars": match.start,
                "end_chars": match.end,
                "match_start_chars": match.match_start,
                "match_end_chars": match.match_end,
                "heading": match.heading,
                **steps([found.read(match)]),
            }
            for match in found.matches
        ],
        "offset_chars": found.offset,
        "searched_to_chars": found.searched_to,
        "complete": found.complete,
        **steps(found.continuations()),
        "untrusted": True,
    }


def outline(found: PaperOutline, steps: Steps) -> Body:
    """The headings of a text."""
    return {
        **_named("paper_outline", found),
        "data": [
            {
                "title": heading.title,
                "level": heading.level,
                "offset_chars": heading.start,
                "size_chars": heading.size,
                **steps([found.read(heading)]),
            }
            for heading in found.headings
        ],
        "offset_chars": found.offset,
        "complete": found.next_offset is None,
        **steps(found.continuations()),
        "untrusted": True,
    }


def source(found: PaperText | PaperFinds | PaperOutline, steps: Steps) -> Body:
    """Any of the three readings of a source."""
    if isinstance(found, PaperFinds):
        return finds(found, steps)
    return outline(found, steps) if isinstance(found, PaperOutline) else text(found, steps)


def facets(found: PaperFacets, steps: Steps) -> Body:
    """The most frequent values of a category."""
    return {
        "object": "list",
        "data": [
            {"value": value, "paper_count": count, **steps([found.search(value)])}
            for value, count in found.values
        ],
        "has_more": found.offset + len(found.values) < found.total,
        "meta": {"category": found.category, "offset": found.offset, "total": found.total},
        **steps(found.continuations()),
        "untrusted": True,
    }
