"""Decodes a PDPP search body, whose members may be missing, into a `SearchPage`."""

from dataclasses import replace
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

from evidence.handles import RecordRef
from evidence.hits import Counts, Hit, Match, Related, SearchPage, Tail
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import DELETED_AT, FanIn, SourceReport, window_read
from service.pdpp import NEWEST_PAGE_ONLY, NO_HITS
from service.pdpp.decode import as_of, number_of, numbers, object_of, pick, reference, rows, short
from service.pdpp.decode import source_of, text_of, texts, warnings_of
from service.ports import NARROWING, SEARCH_EXTENSIONS
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
_TIMES = ("sent_at", "authored_at", "occurred_at", "created_at")
#: Arguments of search for which a source may suggest another value.
_RETRIED = {"q": "query", **{name: name for name in SEARCH_EXTENSIONS}}
_EXCERPTS = ("evidence_excerpts", "match_windows", "field_windows", "matches")


def read(body: dict[str, Any]) -> SearchPage:
    """The page with which a source answered `search`; rows without a record id are left out."""
    hit_rows = rows(body, "data", "results", "hits")
    meta = object_of(body, "meta")
    warnings = warnings_of(body)
    omitted = number_of(_detail(warnings, NEWEST_PAGE_ONLY), "left_out")
    retry = _retry(_detail(warnings, NO_HITS).get("retry_arguments"))
    read = {NEWEST_PAGE_ONLY: omitted is not None, NO_HITS: retry is not None}
    return SearchPage(
        args={},
        hits=[hit for row in hit_rows if (hit := _hit(row))],
        has_more=bool(body.get("has_more", text_of(body, "next_cursor"))),
        next_cursor=text_of(body, "next_cursor"),
        counts=_counts(meta),
        recall=object_of(meta, "recall"),
        warnings=[warning for warning in warnings if not read.get(str(warning.get("code")))],
        as_of=as_of(body),
        absent_words=_words(meta.get("absent_words")),
        nearest_words={
            word: near
            for word, near_words in object_of(meta, "nearest_words").items()
            if len(word) <= CONTRACT.query_chars and (near := _words(near_words))
        },
        retry=retry,
        tail_cut=meta.get("tail_cut") is True,
        tail=_tail(object_of(meta, "tail"), len(hit_rows)),
        left_out=omitted,
        ranking=short(text_of(meta, "ranking"), BUDGETS.label_chars),
        model=short(text_of(meta, "model"), BUDGETS.label_chars),
        fan_in=_fan_in(pick(meta, "package")),
    )


def _tail(tail: dict[str, Any], hits: int) -> Tail | None:
    """The position at which a page could be cut; None if it is outside the page."""
    number, cursor = number_of(tail, "hits"), text_of(tail, "next_cursor")
    if number is None or cursor is None or not CONTRACT.full_hits <= number < hits:
        return None
    return Tail(number, cursor)


def within(page: SearchPage, query: str) -> SearchPage:
    """The page of a foreign source, without words that cannot come from the query."""
    query = f"{query}\n{normalize('NFKD', query)}"  # words are in their search form
    nearest = {
        word: valid_words
        for word, near in page.nearest_words.items()
        if word in query
        and (valid_words := [near_word for near_word in near if _is_word(near_word)])
    }
    near = {near_word for near_words in nearest.values() for near_word in near_words}
    retry = page.retry
    words = (retry or {}).get("query", "").split()
    if not all(word in query or word in near for word in words):
        retry = None
    return replace(
        page,
        hits=[_hit_within(hit, query) for hit in page.hits],
        absent_words=[word for word in page.absent_words if word in query],
        nearest_words=nearest,
        retry=retry,
    )


def _hit_within(hit: Hit, query: str) -> Hit:
    return replace(
        hit,
        matched_words=[word for word in hit.matched_words if word in query],
        missing_words=[word for word in hit.missing_words if word in query],
        forms={word: form for word, form in hit.forms.items() if word in query and _is_word(form)},
    )


def _is_word(text: str) -> bool:
    return len(text) <= CONTRACT.name_bytes and text.isprintable() and " " not in text


def _counts(meta: dict[str, Any]) -> Counts | None:
    """The counts of matching records; `some` is PDPP's count."""
    counts, count = object_of(meta, "counts"), meta.get("count")
    some = number_of(counts, "some")
    if some is None:
        some = number_of(meta, "count") if isinstance(count, int) else number_of(count, "value")
    if some is None:
        return None
    accuracy = text_of(counts, "accuracy") or text_of(meta, "count_accuracy")
    return Counts(number_of(counts, "all"), some, accuracy == "exact")


def _words(candidates: Any) -> list[str]:
    """The words of a list that a query could contain."""
    if not isinstance(candidates, list):
        return []
    words = (word for word in candidates if isinstance(word, str))
    return [word for word in words if 0 < len(word) <= CONTRACT.query_chars][: CONTRACT.query_chars]


def _detail(warnings: list[dict[str, Any]], code: str) -> dict[str, Any]:
    """The `detail` of the first warning with a code."""
    return next((object_of(note, "detail") for note in warnings if note.get("code") == code), {})


def _retry(suggested: Any) -> dict[str, Any] | None:
    """The arguments that a source suggests instead: words, times, and None to remove a limit."""
    if not isinstance(suggested, dict):
        return None
    arguments: dict[str, Any] = {
        ours: text for theirs, ours in _RETRIED.items() if (text := text_of(suggested, theirs))
    }
    arguments |= {name: None for name in NARROWING if name in suggested and suggested[name] is None}
    short_enough = all(len(text) <= CONTRACT.query_chars for text in arguments.values() if text)
    return arguments if arguments and short_enough else None


def _fan_in(package: Any) -> FanIn | None:
    """The sources of a package that answered; None for a single grant."""
    if not isinstance(package, dict):
        return None
    reports = [
        SourceReport(
            name=short(text_of(row, "name"), BUDGETS.message_chars) or "",
            state=text_of(row, "state") or "answered",
            hits=number_of(row, "hits") or 0,
            message=short(text_of(row, "message"), BUDGETS.title_chars),
            **texts(row, "grant_id", "code", "next_step"),
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
    coverage = row.get("coverage")
    valid = isinstance(coverage, (int, float)) and 0 <= coverage <= 1
    return Hit(
        ref=ref,
        id=id,
        authored_at=text_of(row, *_TIMES),
        **texts(row, "title", "emitted_at"),
        deleted_at=text_of(row, DELETED_AT),
        source=source,
        url=address(text_of(row, "record_url", "url") or "", ref),
        matched_fields=[name for name in row.get("matched_fields") or () if isinstance(name, str)],
        matches=[] if row.get("kind") == "related" else _matches(row, id),
        rank=number_of(row, "rank"),
        coverage=coverage if valid else None,
        matched_words=_words(row.get("matched_words")),
        missing_words=_words(row.get("missing_words")),
        forms={
            word: form
            for word, form in object_of(row, "forms").items()
            if isinstance(form, str) and max(len(word), len(form)) <= CONTRACT.query_chars
        },
        related=_related(row, id),
    )


def _related(row: dict[str, Any], id: str) -> Related | None:
    """What a hit without a word of the question is near to it by."""
    read, begins = object_of(row, "related"), text_of(row, "begins") or ""
    path = text_of(read, "field")
    if row.get("kind") != "related" or path is None:
        return None
    return Related(path, begins[: BUDGETS.begins_chars], window_read(id, path, _window(read)))


def address(path: str, ref: RecordRef) -> str:
    """The path of the record, with the connection if the upstream left it out."""
    if not path.startswith("/") or ref.connection_id is None or "connection_id=" in path:
        return path
    joint = "&" if "?" in path else "?"
    return f"{path}{joint}connection_id={quote(ref.connection_id, safe='')}"


def _matches(row: dict[str, Any], id: str) -> list[Match]:
    """The proven windows of a hit; a marked snippet with its field counts as one."""
    for name in _EXCERPTS:
        if name in row:
            matches = [match for part in rows(row, name) if (match := _match(part, id))]
            if matches:
                return matches[: CONTRACT.windows_proven]
    snippet = row.get("snippet")
    match = _match(snippet, id) if isinstance(snippet, dict) else None
    return [match] if match and "<mark>" in match.shown else []


def _match(part: dict[str, Any], id: str) -> Match | None:
    excerpt = text_of(part, "preview_text", "text", "preview", "snippet")
    path = text_of(part, "field_path", "path", "field")
    if excerpt is None or path is None:
        return None
    start = number_of(part, "start_chars")
    complete = part.get("complete") is True or part.get("truncated") is False
    window = _window(part.get("read"))
    if start is None and not window and not complete:
        window = _around_marks(excerpt)
    return Match(
        field_path=path,
        # A server that sends positions marks text the way we do, or pretends to.
        shown=excerpt if start is not None and is_marked(excerpt) else balanced(excerpt),
        **numbers(part, "start", "end", "total", "match_start", "match_end", suffix="_chars"),
        complete=complete,
        read=window_read(id, path, window),
    )


def _window(read: Any) -> dict[str, Any]:
    """The window in a `read` descriptor, as arguments of read_record_field."""
    if not isinstance(read, dict):
        return {}
    return {ours: read[theirs] for theirs, ours in _WINDOW_ARGUMENTS if theirs in read}


def _around_marks(excerpt: str) -> dict[str, Any]:
    """The read of the first marked words, for upstreams that send no positions."""
    text, marks = split(excerpt, escaped=False)
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
