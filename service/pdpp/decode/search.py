"""The search envelope -> `SearchPage`: hits, proven windows, titles from what the upstream said."""

from typing import Any
from urllib.parse import quote

from evidence.envelope import Envelope, SearchEnvelope
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import FanIn, Hit, Match, SearchPage, SourceReport, WordsAlone, window_read
from service.pdpp.decode import number_of, pick, reference, rows, source_of, text_of, warnings_of
from service.pdpp.decode import short
from evidence.text import balanced, is_marked, split

_WINDOW_ARGUMENTS = (
    ("q", "query"),
    ("query", "query"),
    ("offset_chars", "offset_chars"),
    ("limit_chars", "limit_chars"),
    ("match", "match"),
    ("before_chars", "before_chars"),
    ("after_chars", "after_chars"),
)
_TIMES = ("sent_at", "authored_at", "occurred_at", "created_at", "emitted_at")
_EXCERPTS = ("evidence_excerpts", "match_windows", "field_windows", "matches")


def read(envelope: Envelope, *, args: dict[str, Any]) -> SearchPage:
    """The page an upstream answered `search` with; rows that name no record are left out."""
    if isinstance(envelope, SearchEnvelope):
        return _page(envelope.head, envelope.hits(), args)
    found = rows(envelope.body, "data", "results", "hits")
    return _page(envelope.body, [hit for row in found if (hit := _hit(row))], args)


def _page(body: dict[str, Any], hits: list[Hit], args: dict[str, Any]) -> SearchPage:
    """The page around the hits: what the envelope says of them together."""
    meta = body.get("meta") or {}
    count = pick(meta, "count")
    return SearchPage(
        args=args,
        hits=hits,
        has_more=bool(body.get("has_more")),
        next_cursor=text_of(body, "next_cursor"),
        count=count if isinstance(count, int) else number_of(count, "value"),
        count_accuracy=text_of(meta, "count_accuracy"),
        recall=pick(meta, "recall") or {},
        warnings=warnings_of(body),
        fan_in=_fan_in(pick(meta, "package")),
        words=_words(pick(meta, "words"), str(args.get("query", ""))),
    )


def _words(told: Any, query: str) -> WordsAlone | None:
    """What an upstream says of the single words of a query; nothing that is not in the query."""
    if not isinstance(told, dict):
        return None
    listed = (told.get("found"), told.get("missing"))
    found, missing = (
        [word for word in names if isinstance(word, str) and word and word in query][
            : BUDGETS.words_tried
        ]
        for names in (each if isinstance(each, list) else [] for each in listed)
    )
    fewer = text_of(told, "query") or ""
    known = fewer.strip() and fewer != query and all(word in query for word in fewer.split())
    return WordsAlone(found, missing, fewer if known else None)


def _fan_in(package: Any) -> FanIn | None:
    """Who of a package answered; None where one grant was asked."""
    if not isinstance(package, dict):
        return None
    reports = [
        SourceReport(
            name=short(text_of(row, "name"), BUDGETS.label_chars) or "",
            state=text_of(row, "state") or "answered",
            hits=number_of(row, "hits") or 0,
            grant_id=text_of(row, "grant_id"),
            code=text_of(row, "code"),
            message=short(text_of(row, "message"), BUDGETS.title_chars),
            next_step=text_of(row, "next_step"),
        )
        for row in rows(package, "sources")
    ]
    members = number_of(package, "member_count") or len(reports)
    return FanIn(members, number_of(package, "waiting_count") or 0, reports)


def _hit(row: dict[str, Any]) -> Hit | None:
    source = source_of(row)
    ref = reference(row, None, source)
    if ref is None:
        return None
    id = str(ref)
    return Hit(
        ref=ref,
        id=id,
        title=short(text_of(row, "title"), BUDGETS.title_chars),
        at=short(text_of(row, *_TIMES), BUDGETS.time_chars),
        source=source,
        url=_address(text_of(row, "record_url", "url") or "", ref),
        matched_fields=[name for name in row.get("matched_fields") or () if isinstance(name, str)],
        matches=_matches(row, id),
    )


def _address(told: str, ref: RecordRef) -> str:
    """The path of the record, with the connection where an upstream left it out."""
    if not told.startswith("/") or ref.connection_id is None or "connection_id=" in told:
        return told
    joint = "&" if "?" in told else "?"
    return f"{told}{joint}connection_id={quote(ref.connection_id, safe='')}"


def _matches(row: dict[str, Any], id: str) -> list[Match]:
    """The proven windows of a hit; a marked snippet with its field counts as one."""
    for name in _EXCERPTS:
        if name in row:
            found = [match for part in rows(row, name) if (match := _match(part, id))]
            if found:
                return found[: CONTRACT.windows_per_hit]
    snippet = row.get("snippet")
    match = _match(snippet, id) if isinstance(snippet, dict) else None
    return [match] if match and "<mark>" in match.shown else []


def _match(part: dict[str, Any], id: str) -> Match | None:
    shown = text_of(part, "preview_text", "text", "preview", "snippet")
    path = text_of(part, "field_path", "path", "field")
    if shown is None or path is None:
        return None
    start = number_of(part, "start_chars")
    complete = part.get("complete") is True or part.get("truncated") is False
    window = _window(part.get("read"))
    if start is None and not window and not complete:
        window = _around_marks(shown)
    return Match(
        field_path=path,
        # Who says where it stands has marked it as we do, or pretends to.
        shown=shown if start is not None and is_marked(shown) else balanced(shown),
        start=start,
        end=number_of(part, "end_chars"),
        total=number_of(part, "total_chars"),
        match_start=number_of(part, "match_start_chars"),
        match_end=number_of(part, "match_end_chars"),
        complete=complete,
        read=window_read(id, path, window),
    )


def _window(read: Any) -> dict[str, Any]:
    """The window arguments of a `read` descriptor, in the words of read_record_field."""
    if not isinstance(read, dict):
        return {}
    return {ours: read[theirs] for theirs, ours in _WINDOW_ARGUMENTS if theirs in read}


def _around_marks(shown: str) -> dict[str, Any]:
    """The read of the words that are marked first, for upstreams that do not say where they are."""
    text, marks = split(shown, escaped=False)
    if not marks:
        return {}
    start, end = marks[0]
    for first, last in marks[1:]:
        if text[end:first].strip(" "):
            break
        end = last
    words = text[start:end].strip()
    if not words.isprintable() or not 0 < len(words) <= CONTRACT.query_chars:
        return {}
    return {
        "query": words,
        "before_chars": CONTRACT.match_before_chars,
        "after_chars": CONTRACT.match_after_chars,
    }
