"""The search envelope -> `SearchPage`: hits, proven windows, titles from what the upstream said."""

import re
from typing import Any

from evidence.envelope import Envelope
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from evidence.model import Hit, Match, SearchPage
from evidence.reading import number_of, pick, reference, rows, source_of, text_of, warnings_of
from evidence.reading import without
from evidence.text import unmark

_TAG = re.compile(r"</?mark>")
_WINDOW_ARGUMENTS = {
    "q": "query",
    "query": "query",
    "offset_chars": "offset_chars",
    "limit_chars": "limit_chars",
    "match": "match",
    "before_chars": "before_chars",
    "after_chars": "after_chars",
}
_EXCERPTS = ("match_windows", "field_windows", "matches", "evidence_excerpts")


def read(envelope: Envelope, *, args: dict[str, Any]) -> SearchPage:
    """The page an upstream answered `search` with; rows that name no record are left out."""
    body = envelope.body
    meta = body.get("meta") or {}
    count = pick(meta, "count")
    return SearchPage(
        args=args,
        hits=[hit for row in rows(body, "data", "results", "hits") if (hit := _hit(row))],
        has_more=bool(body.get("has_more")),
        next_cursor=text_of(body, "next_cursor"),
        count=count if isinstance(count, int) else number_of(count, "value"),
        count_accuracy=text_of(meta, "count_accuracy"),
        recall=pick(meta, "recall") or {},
        warnings=warnings_of(body),
        envelope=without(body, ("data", "results", "hits")),
    )


def _hit(row: dict[str, Any]) -> Hit | None:
    source = source_of(row)
    ref = reference(row, None, source)
    if ref is None:
        return None
    return Hit(
        ref=ref,
        id=str(ref),
        title=text_of(row, "title"),
        at=text_of(row, "sent_at", "authored_at", "occurred_at", "created_at", "emitted_at"),
        source=source,
        url=text_of(row, "record_url", "url") or "",
        matched_fields=[name for name in row.get("matched_fields") or [] if isinstance(name, str)],
        matches=_matches(row, ref),
    )


def _matches(row: dict[str, Any], ref: RecordRef) -> list[Match]:
    """The proven windows of a hit; a snippet alone, with its field, counts as one."""
    for name in _EXCERPTS:
        found = [match for part in rows(row, name) if (match := _match(part))]
        if found:
            return found[: CONTRACT.windows_per_hit]
    snippet = row.get("snippet")
    match = _match({"text": snippet.get("text"), **snippet}) if isinstance(snippet, dict) else None
    return [match] if match and match.marks else []


def _match(part: dict[str, Any]) -> Match | None:
    shown = text_of(part, "preview_text", "text", "preview", "snippet")
    path = text_of(part, "field_path", "path", "field")
    if shown is None or path is None:
        return None
    start = number_of(part, "start_chars")
    text, marks = _marked(shown, exact=start is not None)
    read_arguments = pick(part, "read")
    if not isinstance(read_arguments, dict):
        read_arguments = {}
    window = {
        ours: read_arguments[theirs]
        for theirs, ours in _WINDOW_ARGUMENTS.items()
        if theirs in read_arguments
    }
    return Match(
        field_path=path,
        text=text,
        marks=marks,
        start=start,
        end=number_of(part, "end_chars"),
        total=number_of(part, "total_chars"),
        match_start=number_of(part, "match_start_chars"),
        match_end=number_of(part, "match_end_chars"),
        complete=part.get("complete") is True or part.get("truncated") is False,
        window=window,
    )


def _marked(shown: str, *, exact: bool) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Plain text and the ranges that stood between marks; `exact` undoes our own escapes."""
    plain, marks, opened = "", list[tuple[int, int]](), -1
    position = 0
    for tag in _TAG.finditer(shown):
        piece = shown[position : tag.start()]
        plain += unmark(piece) if exact else piece
        position = tag.end()
        if tag.group() == "<mark>":
            opened = len(plain)
        elif opened >= 0:
            marks.append((opened, len(plain)))
            opened = -1
    piece = shown[position:]
    return plain + (unmark(piece) if exact else piece), tuple(marks)
