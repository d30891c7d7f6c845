"""Answers about papers -> JSON, for MCP `structuredContent` and for REST alike.

The two differ in the form of next calls. `Steps` turns calls into a member: `as_calls` for MCP,
links for REST.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from evidence.model import Continuation, chars, members
from evidence.papers import (
    Paper,
    PaperFacets,
    PaperFinds,
    PaperHit,
    PaperOutline,
    PaperPage,
    PaperReading,
    PaperText,
)

Steps = Callable[[list[Continuation]], dict[str, Any]]
Body = dict[str, Any]


def body(found: Any, steps: Steps) -> Body:
    """The JSON of any answer about papers, with its next calls."""
    return {**_BODIES[type(found)](found, steps), **steps(found.continuations()), "untrusted": True}


def as_calls(found: list[Continuation]) -> Body:
    """`{"calls": […]}` of tool calls; nothing if there are none."""
    return {"calls": [each.as_json for each in found]} if found else {}


def _page(found: PaperPage, steps: Steps) -> Body:
    """A list of hits."""
    meta: Body = {"offset": found.offset}
    if found.ended_early:
        meta["ended_early"] = True
    if found.did_you_mean:
        meta["did_you_mean"] = found.did_you_mean
    if found.counts is not None:
        meta["counts"] = {**asdict(found.counts), "accuracy": "exact"}
    return {
        "object": "list",
        "data": [_hit(hit, steps) for hit in found.hits],
        **members(found, "has_more", "next_cursor"),
        "meta": meta,
    }


def _hit(hit: PaperHit, steps: Steps) -> Body:
    return {
        **members(hit, "paper_id", "title", "year", "venue", "authors", "authors_total"),
        "snippet_markdown": hit.snippet,
        "matched_in": hit.place,
        **(asdict(hit.match) if hit.match else {}),
        **steps(hit.continuations()),
    }


def _paper(found: Paper, steps: Steps) -> Body:
    return {"object": "paper", **asdict(found)}


def _named(kind: str, found: PaperReading) -> Body:
    return {"object": kind, **members(found, "paper_id", "title", "lang"), **chars(found, "total")}


def _text(found: PaperText, steps: Steps) -> Body:
    """A window of a text. `text` is the window alone, `truncation_marker` the text after a cut."""
    return {
        **_named("paper_text", found),
        **members(found, "template", "media_type", "version", "text"),
        "truncation_marker": found.marker.strip() or None,
        "offset_chars": found.start,
        "end_chars": found.end,
        "complete": found.complete,
    }


def _finds(found: PaperFinds, steps: Steps) -> Body:
    """The matches of a query in a text."""
    return {
        **_named("paper_matches", found),
        "query": found.query,
        "data": [
            {
                "excerpt_markdown": match.shown,
                **chars(match, "start", "end", "match_start", "match_end"),
                "heading": match.heading,
                **steps([found.read(match)]),
            }
            for match in found.matches
        ],
        **chars(found, "offset", "searched_to"),
        "complete": found.complete,
    }


def _outline(found: PaperOutline, steps: Steps) -> Body:
    """The headings of a text."""
    return {
        **_named("paper_outline", found),
        "data": [
            {
                **members(heading, "title", "level"),
                "offset_chars": heading.start,
                "size_chars": heading.size,
                **steps([found.read(heading)]),
            }
            for heading in found.headings
        ],
        "offset_chars": found.offset,
        "complete": found.next_offset is None,
    }


def _facets(found: PaperFacets, steps: Steps) -> Body:
    """The most frequent values of a category."""
    return {
        "object": "list",
        "data": [
            {"value": value, "paper_count": count, **steps([found.search(value)])}
            for value, count in found.values
        ],
        "has_more": found.offset + len(found.values) < found.total,
        "meta": members(found, "category", "offset", "total"),
    }


_BODIES: dict[type, Callable[[Any, Steps], Body]] = {
    Paper: _paper,
    PaperFacets: _facets,
    PaperFinds: _finds,
    PaperOutline: _outline,
    PaperPage: _page,
    PaperText: _text,
}
