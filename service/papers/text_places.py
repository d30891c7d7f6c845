"""Positions in a paper's text: its headings, and the matches of a query.

Headings are lines that begin with `#` signs, as in snapshots, outside fenced code.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evidence.errors import TimedOut
from evidence.find import Span, literals, spans
from evidence.limits import BUDGETS
from evidence.papers import Heading, TextMatch
from evidence.question import Query, parse_query
from evidence.text import excerpt, mark
from evidence.work import Deadline, check
from service.lru import LruCache
from service.papers.snapshot_file import Mark
from service.papers.text_file import TextFile

BLOCK_CHARS = 65_536
LINE_CHARS = 4_096  # of a heading that are examined for its title
HEADINGS_MAX = 20_000  # of one text; later ones are not listed
CHEAP_CHARS = 10_000_000  # a text whose headings are found without a request for them
OUTLINES_CACHED = 64

# A heading or a fence, with the preceding line ending, which makes the search fast.
_NOTABLE = re.compile(
    r"\n {0,3}(?:(?P<atx>#{1,6})(?=[ \t\r\n]|\Z)|(?P<fence>`{3,}|~{3,}))(?P<rest>[^\n]*)"
)


@dataclass(frozen=True, slots=True)
class Outline:
    """The headings with their offsets, levels and ends, in text order."""

    starts: "array[int]"
    levels: bytes
    sizes: "array[int]"


_outlines: LruCache[Mark, Outline] = LruCache(OUTLINES_CACHED)


def outline(file: TextFile, offset: int, limit: int) -> tuple[list[Heading], int | None]:
    """At most `limit` headings from `offset` on, and the offset of the next one.

    The size of a heading extends to the next one of its level or above, or to the end of the text.
    Titles are Markdown; very long ones are truncated. Raises `InvalidRequest` (`invalid_window`)
    for an offset past the end, `TimedOut` for a text that takes too long.
    """
    file.check(offset)
    whole = _outlined(file)
    first = bisect_left(whole.starts, offset)
    after = first + limit
    positions = range(first, min(after, len(whole.starts)))
    headings = [
        Heading(_title(file, whole.starts[at]), whole.levels[at], whole.starts[at], whole.sizes[at])
        for at in positions
    ]
    return headings, whole.starts[after] if after < len(whole.starts) else None


def heading_above(file: TextFile, offset: int) -> str | None:
    """The heading above a position; None if there is none, or if finding it takes too long."""
    if file.total > CHEAP_CHARS and _outlines.get(file.identity) is None:
        return None
    try:
        starts = _outlined(file).starts
    except TimedOut:
        return None
    above = bisect_right(starts, offset) - 1
    return _title(file, starts[above]) if above >= 0 else None


def _outlined(file: TextFile) -> Outline:
    return _outlines.once(file.identity, lambda: _build(file))


def _build(file: TextFile) -> Outline:
    starts, levels = array("I"), bytearray()
    for start, level in _headings(file):
        starts.append(start)
        levels.append(level)
        if len(starts) == HEADINGS_MAX:
            break
    return Outline(starts, bytes(levels), _sizes(starts, levels, file.total))


def _sizes(starts: "array[int]", levels: bytearray, total: int) -> "array[int]":
    sizes = array("I", [total - start for start in starts])
    open_ones: list[int] = []
    for at, level in enumerate(levels):
        while open_ones and levels[open_ones[-1]] >= level:
            closed = open_ones.pop()
            sizes[closed] = starts[at] - starts[closed]
        open_ones.append(at)
    return sizes


def _headings(file: TextFile) -> Iterator[tuple[int, int]]:
    """(offset, level) of every heading whose line is no longer than a block."""
    text, base, fence = "\n", -1, ""
    for offset in range(0, file.total, BLOCK_CHARS):
        check("looking for headings")
        text += file.read(offset, offset + BLOCK_CHARS)
        end = text.rfind("\n") if offset + BLOCK_CHARS < file.total else len(text)
        for line in _NOTABLE.finditer(text, 0, max(0, end)):
            if line["fence"]:
                fence = _fence_after(fence, line["fence"], line["rest"])
            elif not fence and _bare(line["rest"]):
                yield base + line.start() + 1, len(line["atx"])
        done = end if end > 0 else len(text)
        text, base = text[done:], base + done


def _fence_after(fence: str, signs: str, rest: str) -> str:
    """The open code fence after a line with a fence; empty for none."""
    if not fence:
        return "" if signs[0] == "`" and "`" in rest else signs
    return "" if signs.startswith(fence) and not rest.strip() else fence


def _title(file: TextFile, start: int) -> str:
    line = file.read(start, start + LINE_CHARS).partition("\n")[0]
    title = _bare(line.strip().lstrip("#"))
    size = BUDGETS.title_chars
    return title if len(title) <= size else f"{title[: size - 1]}…"


def _bare(title: str) -> str:
    """The text of a heading without closing signs."""
    title = title.strip()
    open_title = title.rstrip("#")
    closed = open_title != title and (not open_title or open_title[-1] in " \t")
    return open_title.rstrip() if closed else title


CHUNK_CHARS = 32_768
# Every chunk overlaps the next by this much, so a match of this length is never cut.
OVERLAP_CHARS = 4_096
# The text around a match from which its excerpt is chosen.
MARGIN_CHARS = BUDGETS.excerpt_chars + 32
QUERIES_CACHED = 256

#: The offset from which a text has no exact place of a query.
_inexact: LruCache[tuple[Mark, str], int] = LruCache(QUERIES_CACHED)


def find(
    file: TextFile,
    query: str,
    offset: int,
    deadline: Deadline,
    *,
    limit: int = BUDGETS.paper_matches,
) -> tuple[list[TextMatch], int]:
    """(matches, searched_to): at most `limit` matches from `offset` on, in the order of the text.

    A match is text equal to the query, ignoring case, accents and width; without one, the tightest
    spans of all its words. `searched_to` is where to resume: the end of the last match if more
    follow, the length of the text if none do, or else the position at the deadline, which always
    advances. Resuming from there returns every match once.
    """
    file.check(offset)
    match_spans, searched_to = _search(file, parse_query(query), offset, deadline, limit)
    return [_text_match(file, span) for span in match_spans], searched_to


def _search(
    file: TextFile, query: Query, offset: int, deadline: Deadline, limit: int
) -> tuple[list[Span], int]:
    key = (file.identity, query.text)
    inexact_from = _inexact.get(key)
    look_exact = inexact_from is None or offset < inexact_from
    exact, spread = _SpanCollector(offset, limit), _SpanCollector(offset, limit)
    reached = offset
    # Chunks have fixed positions, so that all searches see the same spans.
    for base in range(offset - offset % CHUNK_CHARS, file.total, CHUNK_CHARS):
        chunk = file.read(base, base + CHUNK_CHARS + OVERLAP_CHARS)
        if look_exact:
            places = literals(chunk, query.text)
            exact.take(base, (Span(*bounds, (bounds,)) for bounds in places))
        if not exact.spans and not spread.full:
            spread.take(base, sorted(spans(chunk, query, limit=len(chunk))))
        reached = min(base + CHUNK_CHARS, file.total)
        if exact.full or (spread.full and not look_exact) or deadline.expired():
            break
    if look_exact and not exact.spans and reached == file.total:
        _inexact.put(key, offset)
    result = exact if exact.spans else spread
    if result.full:
        return result.spans[:limit], result.spans[limit - 1].end
    return result.spans, max(reached, result.end)


class _SpanCollector:
    """Non-overlapping spans of the whole text, one more than the limit to show that more follow.

    `end` is where the last one ends, or where the search began.
    """

    def __init__(self, offset: int, limit: int) -> None:
        self.spans: list[Span] = []
        self.end = offset
        self._limit = limit

    @property
    def full(self) -> bool:
        return len(self.spans) > self._limit

    def take(self, base: int, new_spans: Iterable[Span]) -> None:
        """Adds the spans that begin in the chunk at `base`; `new_spans` are in order."""
        for span in new_spans:
            if self.full or span.start >= CHUNK_CHARS:
                return
            if base + span.start >= self.end:
                self.spans.append(_moved(span, base))
                self.end = self.spans[-1].end


def _moved(span: Span, by: int) -> Span:
    marks = tuple((start + by, end + by) for start, end in span.marks)
    return Span(span.start + by, span.end + by, marks)


def _text_match(file: TextFile, span: Span) -> TextMatch:
    base = max(0, span.start - MARGIN_CHARS)
    text = file.read(base, span.end + MARGIN_CHARS)
    near = _moved(span, -base)
    start, end = excerpt(text, near, size=BUDGETS.excerpt_chars)
    marked_text, _ = mark(text, start=start, end=end, marks=near.marks)
    return TextMatch(
        shown=marked_text,
        start=base + start,
        end=base + end,
        match_start=span.start,
        match_end=span.end,
        heading=heading_above(file, span.start),
    )
