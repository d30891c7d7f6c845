"""Converts search results to MCP JSON. The text channel has the same information."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evidence.hits import Counts, SearchPage
from evidence.limits import CONTRACT
from evidence.model import READ_FIELD, Continuation, FanIn, SourceReport
from evidence.model import as_of_json, known, paged, spelled

#: How to read any field of a hit, because windows of whole fields have no call.
READ_ANY_FIELD = Continuation(
    READ_FIELD, {"id": "<id of the hit>", "field_path": "<field>"}, "read_any_field"
)


def structured(
    page: SearchPage, calls: Sequence[Continuation], *, base_url: str = ""
) -> dict[str, Any]:
    """`{data, results, content_ladder}`; the hits are in `results`, not in `data`."""
    data: dict[str, Any] = {
        "object": "list",
        "has_more": page.has_more,
        "next_cursor": page.next_cursor,
        "meta": _meta(page),
        "as_of": as_of_json(page.as_of),
    }
    ladder: dict[str, Any] = {"kind": "search_results", "read_tool": "read_record_field"}
    if page.shows_whole_fields:
        ladder["read_any_field"] = spelled(READ_ANY_FIELD)
    return {
        "data": paged(data, calls, page.ended_early),
        "results": [hit.addressed(base_url) for hit in page.hits],
        "content_ladder": {**ladder, "records": [hit.rung for hit in page.hits]},
        "untrusted": True,
    }


def _meta(page: SearchPage) -> dict[str, Any]:
    return known(
        {
            "recall": page.recall,
            "warnings": page.warnings,
            "counts": counts_json(page.counts) if page.counts else None,
            "absent_words": page.absent_words or None,
            "nearest_words": page.nearest_words or None,
            "tail_cut": page.tail_cut or None,
            "left_out": page.left_out,
            "ranking": page.ranking,
            "model": page.model,
            "package": _fan_in(page.fan_in) if page.fan_in else None,
        }
    )


def counts_json(counts: Counts) -> dict[str, Any]:
    """The counts of matching records: `some`, `accuracy`, and `all` if it is known."""
    accuracy = "exact" if counts.exact else "lower_bound"
    body = {"some": counts.some, "accuracy": accuracy}
    return body if counts.all is None else {**body, "all": counts.all}


def _fan_in(fan_in: FanIn) -> dict[str, Any]:
    """Counts of sources by state, and at most 12 with hits and 12 that did not answer."""
    with_hits = [source for source in fan_in.of("answered") if source.hits][: CONTRACT.candidates]
    return {
        "member_count": fan_in.members,
        "waiting_count": fan_in.waiting,
        "answered_count": len(fan_in.of("answered")),
        "failed_count": len(fan_in.of("failed")),
        "timed_out_count": len(fan_in.of("timed_out")),
        "sources": [
            report_json(report) for report in with_hits + fan_in.silent[: CONTRACT.candidates]
        ],
    }


def report_json(source: SourceReport) -> dict[str, Any]:
    """What one source of a package contributed to the page."""
    return known(asdict(source))
