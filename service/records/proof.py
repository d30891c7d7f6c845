"""Proven windows: where in a field the words of a query stand, and the text around them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evidence.find import Haystack, Span, spans
from evidence.fold import fold
from evidence.limits import BUDGETS, CONTRACT
from evidence.query import Query, Term
from evidence.text import beginning, excerpt, mark
from service.records.sqlite.snapshot import SqliteSnapshot as Snapshot
from service.records import documents
from service.records.engine import Big, Stored
from service.records.sqlite.terms import Wanted, expression

CHUNK_OVERLAP_CHARS = 64
CHUNKS_TRIED = 8
SPANS_CONSIDERED = 8
_WORDS_ONLY = re.compile(r"[\w\s]+")


@dataclass(slots=True)
class Proof:
    """One window of a field around a match; offsets are code points of the stored text.

    `read_from` is where a read by offset begins, 0 in a field that one read shows whole; `by_query`
    holds where reading the field by the query lands on this very match.
    """

    field: str
    preview: str
    start: int
    end: int
    total: int
    match_start: int
    match_end: int
    read_from: int
    by_query: bool = False


def prove(
    snapshot: Snapshot,
    record: Stored,
    fields: Sequence[str],
    query: Query,
    wanted: Sequence[Wanted],
) -> list[Proof]:
    """Up to three windows over the matched fields of a record, the first field's best first.

    `wanted` are the terms of the query that the record was found by.
    """
    proofs: list[Proof] = []
    for field in fields:
        room = CONTRACT.windows_per_hit - len(proofs)
        if room <= 0:
            break
        if field in record.big:
            found = _prove_big(snapshot, record.big[field], field, query, wanted, room)
        else:
            found = _prove_text(field, record.data.get(field), query, room)
        proofs += found
    return proofs


def _prove_text(field: str, text: Any, query: Query, room: int) -> list[Proof]:
    if not isinstance(text, str):
        return []
    haystack = Haystack(text)
    found = haystack.spans(query, limit=SPANS_CONSIDERED)
    if not found:
        return []
    proofs = [window.proof(field, text, len(text)) for window in _windows(text, found, room)]
    proofs[0].by_query = _reads_first(haystack, query, found)
    return proofs


def _reads_first(haystack: Haystack, query: Query, found: Sequence[Span]) -> bool:
    """Whether reading the field by the query, as `finding.matches` walks, meets `found[0]`."""
    phrase = _phrase(query.text)
    if phrase is None:
        return False
    if len(phrase.terms[0].words) == 1:
        return True
    if len(found) == SPANS_CONSIDERED:  # there may be more, and one of them may come first
        return False
    lands = haystack.first(phrase) or min(found, key=lambda span: (span.end - span.start, span))
    return (lands.start, lands.end) == (found[0].start, found[0].end)


@lru_cache(maxsize=256)
def _phrase(text: str) -> Query | None:
    """The words of a query side by side, where it has nothing but words in it."""
    words = tuple(fold(text).split()) if _WORDS_ONLY.fullmatch(text) else ()
    return Query(text, (Term(words),)) if words else None


def _prove_big(
    snapshot: Snapshot,
    big: Big,
    field: str,
    query: Query,
    wanted: Sequence[Wanted],
    room: int,
) -> list[Proof]:
    proofs: list[Proof] = []
    for number in _chunks_with(snapshot, big, wanted):
        base = number * CONTRACT.chunk_chars
        text = chunk_text(snapshot, big, number)
        found = spans(text, query, limit=SPANS_CONSIDERED, partial=True)
        own = [span for span in found if span.start < CONTRACT.chunk_chars]
        earlier = _end_of_chunk(snapshot, big, number - 1) if number and _is_near(own) else ""
        for window in _windows(text, own, room - len(proofs)):
            proofs.append(window.proof(field, text, big.chars, base, earlier))
        if len(proofs) >= room:
            break
    return proofs


@dataclass(slots=True)
class _Window:
    """A stretch of text around its best span; other spans inside it are marked too."""

    span: Span
    start: int
    end: int
    marks: Sequence[tuple[int, int]]

    def proof(self, field: str, text: str, total: int, base: int = 0, earlier: str = "") -> Proof:
        """The proof; `earlier` is what stands before a text that begins at `base`."""
        start, end, match_start = self.start, self.end, self.span.start
        preview, _ = mark(text, start=start, end=end, marks=self.marks)
        read_from = 0
        if total > CONTRACT.window_chars:
            read_from = _before(earlier + text, base - len(earlier), len(earlier) + match_start)
        return Proof(
            field,
            preview,
            base + start,
            base + end,
            total,
            base + match_start,
            base + self.span.end,
            read_from,
        )


def _before(text: str, base: int, match_start: int) -> int:
    """Where a read of the match begins: at a sentence or word near its first character."""
    return base + beginning(text, match_start - CONTRACT.match_before_chars)


def _is_near(found: Sequence[Span]) -> bool:
    """Whether the read of one of these begins in the chunk before."""
    return any(span.start < CONTRACT.match_before_chars for span in found)


def _end_of_chunk(snapshot: Snapshot, big: Big, number: int) -> str:
    return documents.read_chunks(snapshot, big, number, number)[-CONTRACT.match_before_chars :]


def _windows(text: str, found: Sequence[Span], room: int) -> list[_Window]:
    """At most `room` windows for spans that come best first; none shows what another does."""
    size = BUDGETS.excerpt_chars
    windows: list[_Window] = []
    for span in found:
        for window in windows:
            if window.start <= span.start and span.end <= window.end:
                window.marks = sorted({*window.marks, *span.marks})
                break
        else:
            if len(windows) < room:
                start, end = excerpt(text, span, size=size)
                if windows:
                    start, end = _beside(windows, span, start, end)
                windows.append(_Window(span, start, end, span.marks))
    return windows


def _beside(windows: Sequence[_Window], span: Span, start: int, end: int) -> tuple[int, int]:
    """The range without what other windows show, where that leaves enough to read.

    Never longer than it was: a span that is too long for a window is not in it whole.
    """
    first, last = start, end
    for window in windows:
        if window.start < last <= window.end:
            last = max(span.end, window.start)
        if window.start <= first < window.end:
            first = min(span.start, window.end)
    if BUDGETS.excerpt_chars_min <= last - first <= end - start:
        return first, last
    return start, end


def chunk_text(snapshot: Snapshot, big: Big, number: int, overlap: int = 0) -> str:
    """A chunk of a large value with the beginning of the next, so that no word is cut."""
    last = min(number + 1, big.chunks - 1)
    text = documents.read_chunks(snapshot, big, number, last)
    return text[: CONTRACT.chunk_chars + (overlap or CHUNK_OVERLAP_CHARS)]


def _chunks_with(snapshot: Snapshot, big: Big, terms: Sequence[Wanted]) -> Iterator[int]:
    """Chunks with all the words, else chunks with any of them, in order."""
    seen = False
    for joined in (" AND ", " OR "):
        for number in chunks_matching(
            snapshot, big, expression(terms, joined=joined), CHUNKS_TRIED
        ):
            seen = True
            yield number
        if seen:
            return


def chunks_matching(snapshot: Snapshot, big: Big, match: str, limit: int = -1) -> Iterator[int]:
    """The numbers of a value's chunks whose text matches an FTS5 expression, in order."""
    rows = snapshot.db.execute(
        "SELECT rowid FROM fts_chunk WHERE fts_chunk MATCH ? AND rowid BETWEEN ? AND ? "
        "ORDER BY rowid LIMIT ?",
        (match, big.first, big.first + big.chunks - 1, limit),
    )
    return (rowid - big.first for (rowid,) in rows)
