"""A search page -> the JSON of MCP `structuredContent`. The text channel carries the same facts."""

from dataclasses import asdict
from typing import Any

from evidence.continuation import Continuation
from evidence.hits import Counts, FanIn, Hit, Match, SearchPage, SourceReport
from evidence.limits import BUDGETS, CONTRACT
from evidence.members import known
from evidence.model import READ_FIELD
from evidence.text import clip
from evidence.wire import absolute, call, paged, source_of, spelled

#: How to read any field of a hit, because windows of whole fields have no call of their own.
READ_ANY_FIELD = Continuation(
    READ_FIELD, {"id": "<id of the hit>", "field_path": "<field>"}, "read_any_field"
)


def search(page: SearchPage, *, base_url: str = "") -> dict[str, Any]:
    """`{data, results, content_ladder}`; the hits are in `results`, not in `data`."""
    data: dict[str, Any] = {
        "object": "list",
        "has_more": page.has_more,
        "next_cursor": page.next_cursor,
        "meta": _meta(page),
    }
    ladder: dict[str, Any] = {"kind": "search_results", "read_tool": "read_record_field"}
    if shows_whole_fields(page):
        ladder["read_any_field"] = spelled(READ_ANY_FIELD)
    return {
        "data": paged(data, page.continuations(), page.ended_early),
        "results": [result(hit, base_url) for hit in page.hits],
        "content_ladder": {**ladder, "records": [rung(hit) for hit in page.hits]},
        "untrusted": True,
    }


def shows_whole_fields(page: SearchPage) -> bool:
    """True if a window of the page is a whole field, so that it has no call of its own."""
    return any(match.complete for hit in page.hits for match in hit.matches)


def _meta(page: SearchPage) -> dict[str, Any]:
    meta: dict[str, Any] = {"recall": page.recall, "warnings": page.warnings}
    if page.counts:
        meta["counts"] = counts(page.counts)
    if page.absent_words:
        meta["absent_words"] = page.absent_words
    if page.nearest_words:
        meta["nearest_words"] = page.nearest_words
    if page.tail_cut:
        meta["tail_cut"] = True
    if page.left_out is not None:
        meta["left_out"] = page.left_out
    if page.fan_in:
        meta["package"] = _fan_in(page.fan_in)
    return meta


def counts(found: Counts) -> dict[str, Any]:
    """The counts of matching records: `some`, `accuracy`, and `all` if it is known."""
    accuracy = "exact" if found.exact else "lower_bound"
    return known({"some": found.some, "accuracy": accuracy, "all": found.all})


def _fan_in(found: FanIn) -> dict[str, Any]:
    """Counts of sources by state, and at most 12 with hits and 12 that did not answer."""
    listed = [source for source in found.of("answered") if source.hits][: CONTRACT.candidates]
    return {
        "member_count": found.members,
        "waiting_count": found.waiting,
        "answered_count": len(found.of("answered")),
        "failed_count": len(found.of("failed")),
        "timed_out_count": len(found.of("timed_out")),
        "sources": [report(one) for one in listed + found.silent[: CONTRACT.candidates]],
    }


def report(source: SourceReport) -> dict[str, Any]:
    """The part of one source of a package in the page."""
    return known(asdict(source))


def result(hit: Hit, base_url: str) -> dict[str, Any]:
    """One entry of `results`: the hit, how it matches, and its first window."""
    shown = {
        "id": hit.id,
        "title": title(hit),
        "url": absolute(base_url, hit.url),
        **source_of(hit.source),
        "stream": hit.ref.stream,
        "record_id": hit.ref.record_id,
    }
    facts: dict[str, Any] = {
        "at": hit.at,
        "rank": hit.rank,
        "coverage": hit.coverage,
        "matched_words": hit.matched_words,
        "missing_words": hit.missing_words,
        "forms": hit.forms,
        "matched_fields": hit.matched_fields,
    }
    shown |= {name: value for name, value in facts.items() if value not in (None, [], {})}
    if hit.matches:
        shown["evidence_preview"] = hit.matches[0].shown
    return shown


def rung(hit: Hit) -> dict[str, Any]:
    """One hit of the content ladder: where its windows are, and the calls that open them."""
    if not hit.matches:
        return {"id": hit.id, "fetch": call(hit.fetch)}
    first, *others = hit.matches
    further = [{**_evidence(match), "preview_text": match.shown} for match in others]
    return {
        "id": hit.id,
        "evidence_preview": first.shown,
        "evidence": [_evidence(first), *further],
    }


def _evidence(match: Match) -> dict[str, Any]:
    """The position of a window; the text of a hit's first one is its `evidence_preview`."""
    evidence: dict[str, Any] = {"field_path": match.field_path}
    if match.start is not None:
        evidence["start_chars"], evidence["end_chars"] = match.start, match.end
        evidence["total_chars"] = match.total
    if match.match_start is not None:
        evidence["match_start_chars"] = match.match_start
        evidence["match_end_chars"] = match.match_end
    evidence["complete"] = match.complete
    if not match.complete:
        evidence["read"] = call(match.read)
    return evidence


def title(hit: Hit) -> str:
    """A hit's own title, else what it is: `label · stream · time`."""
    label = clip(hit.source.label, BUDGETS.label_chars)
    found = hit.title or " · ".join(p for p in (label, hit.ref.stream, hit.at) if p)
    return clip(found, BUDGETS.title_chars)
