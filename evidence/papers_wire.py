"""Converts answers about papers to JSON, for MCP `structuredContent` and for REST.

The two differ in the form of next calls. `Steps` turns calls into a member: `as_calls` for MCP,
links for REST.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from evidence.model import Continuation, chars, members
from evidence import papers

Steps = Callable[[list[Continuation]], dict[str, Any]]
Body = dict[str, Any]


def body(answer: Any, steps: Steps) -> Body:
    """The JSON of any answer about papers, with its next calls."""
    body = _BODIES[type(answer)](answer, steps)
    return {**body, **steps(answer.continuations()), "untrusted": True}


def as_calls(continuations: list[Continuation]) -> Body:
    """`{"calls": […]}` of tool calls; nothing if there are none."""
    return {"calls": [call.as_json for call in continuations]} if continuations else {}


def _page(page: papers.PaperPage, steps: Steps) -> Body:
    """A list of hits."""
    meta: Body = {"offset": page.offset}
    if page.ended_early:
        meta["ended_early"] = True
    if page.did_you_mean:
        meta["did_you_mean"] = page.did_you_mean
    if page.counts is not None:
        meta["counts"] = {**asdict(page.counts), "accuracy": "exact"}
    if page.ranking is not None:
        meta["ranking"] = page.ranking
    if page.warnings:
        meta["warnings"] = page.warnings
    return {
        "object": "list",
        "data": [_hit(hit, steps) for hit in page.hits],
        **members(page, "has_more", "next_cursor"),
        "meta": meta,
    }


def _hit(hit: papers.PaperHit, steps: Steps) -> Body:
    return {
        **members(hit, "paper_id", "title", "year", "venue", "authors", "authors_total"),
        "snippet_markdown": hit.snippet,
        "matched_in": hit.place,
        **({"kind": "related"} if hit.related else {}),
        **(asdict(hit.match) if hit.match else {}),
        **steps(hit.continuations()),
    }


def _paper(paper: papers.Paper, steps: Steps) -> Body:
    return {"object": "paper", **asdict(paper)}


def _identity(kind: str, text: papers.PaperReading) -> Body:
    return {"object": kind, **members(text, "paper_id", "title", "lang"), **chars(text, "total")}


def _text(text: papers.PaperText, steps: Steps) -> Body:
    """A window of a text. `text` is the window alone, `truncation_marker` the text after a cut."""
    return {
        **_identity("paper_text", text),
        **members(text, "template", "media_type", "version", "text"),
        "truncation_marker": text.marker.strip() or None,
        "offset_chars": text.start,
        "end_chars": text.end,
        "complete": text.complete,
    }


def _finds(finds: papers.PaperFinds, steps: Steps) -> Body:
    """The matches of a query in a text."""
    return {
        **_identity("paper_matches", finds),
        "query": finds.query,
        "data": [
            {
                "excerpt_markdown": match.shown,
                **chars(match, "start", "end", "match_start", "match_end"),
                "heading": match.heading,
                **steps([finds.read(match)]),
            }
            for match in finds.matches
        ],
        **chars(finds, "offset", "searched_to"),
        "complete": finds.complete,
    }


def _outline(outline: papers.PaperOutline, steps: Steps) -> Body:
    """The headings of a text."""
    return {
        **_identity("paper_outline", outline),
        "data": [
            {
                **members(heading, "title", "level"),
                "offset_chars": heading.start,
                "size_chars": heading.size,
                **steps([outline.read(heading)]),
            }
            for heading in outline.headings
        ],
        "offset_chars": outline.offset,
        "complete": outline.next_offset is None,
    }


def _facets(facets: papers.PaperFacets, steps: Steps) -> Body:
    """The most frequent values of a category."""
    return {
        "object": "list",
        "data": [
            {"value": value, "paper_count": count, **steps([facets.search(value)])}
            for value, count in facets.values
        ],
        "has_more": facets.offset + len(facets.values) < facets.total,
        "meta": members(facets, "category", "offset", "total"),
    }


_BODIES: dict[type, Callable[[Any, Steps], Body]] = {
    papers.Paper: _paper,
    papers.PaperFacets: _facets,
    papers.PaperFinds: _finds,
    papers.PaperOutline: _outline,
    papers.PaperPage: _page,
    papers.PaperText: _text,
}
