"""Finds a query in a text, piece by piece, in the order of the text."""

from collections.abc import Iterable, Iterator

from evidence import query as queries
from evidence.find import Span, literals, spans
from evidence.limits import BUDGETS
from evidence.papers import TextMatch
from evidence.query import Query
from evidence.text import excerpt, mark
from evidence.work import Deadline
from service.papers.outline import heading_above
from service.lru import LruCache
from service.papers.text_file import TextFile
from service.papers.text_index import Identity

PIECE_CHARS = 32_768
# Every piece runs on into the next by this much, so a match of this length is cut by no edge.
OVERLAP_CHARS = 4_096
# Text around a match in which its excerpt is chosen.
MARGIN_CHARS = BUDGETS.excerpt_chars + 32
KEPT = 256

#: The offset from which a text has no exact place of a query.
_inexact: LruCache[tuple[Identity, str], int] = LruCache(KEPT)


def find(
    file: TextFile,
    query: str,
    offset: int,
    deadline: Deadline,
    *,
    limit: int = BUDGETS.paper_matches,
) -> tuple[list[TextMatch], int]:
    """(matches, searched_to): at most `limit` matches from `offset` on, in the order of the text.

    A match is a place that reads as the query does, whatever its case, accents and width; without
    one, the tightest spans of all its words. `searched_to` is where to resume: the end of
    the last match if more follow, the length of the text if none do, else the position at the
    deadline, which always advances. Resuming from there gives every match once.
    """
    file.check(offset)
    found, searched_to = _search(file, queries.parse(query), offset, deadline, limit)
    return [_shown(file, span) for span in found], searched_to


def _search(
    file: TextFile, query: Query, offset: int, deadline: Deadline, limit: int
) -> tuple[list[Span], int]:
    asked = (file.identity, query.text)
    inexact_from = _inexact.get(asked)
    look_exact = inexact_from is None or offset < inexact_from
    exact, spread = _Found(offset, limit), _Found(offset, limit)
    reached = offset
    # Pieces have fixed positions, so that all searches see the same spans.
    for base in range(offset - offset % PIECE_CHARS, file.total, PIECE_CHARS):
        piece = file.read(base, base + PIECE_CHARS + OVERLAP_CHARS)
        if look_exact:
            exact.take(base, _exact(piece, query))
        if not exact.spans and not spread.full:
            spread.take(base, sorted(spans(piece, query, limit=len(piece))))
        reached = min(base + PIECE_CHARS, file.total)
        if exact.full or (spread.full and not look_exact) or deadline.expired():
            break
    if look_exact and not exact.spans and reached == file.total:
        _inexact.put(asked, offset)
    result = exact if exact.spans else spread
    if result.full:
        return result.spans[:limit], result.spans[limit - 1].end
    return result.spans, max(reached, result.end)


class _Found:
    """Spans of the whole text without overlap, one more than the limit, to show that more follow.

    `end` is where the last one ends, or where the search began.
    """

    def __init__(self, offset: int, limit: int) -> None:
        self.spans: list[Span] = []
        self.end = offset
        self._limit = limit

    @property
    def full(self) -> bool:
        return len(self.spans) > self._limit

    def take(self, base: int, found: Iterable[Span]) -> None:
        """Adds the spans that begin in the piece at `base`; `found` are in order."""
        for span in found:
            if self.full or span.start >= PIECE_CHARS:
                return
            if base + span.start >= self.end:
                self.spans.append(_moved(span, base))
                self.end = self.spans[-1].end


def _exact(piece: str, query: Query) -> Iterator[Span]:
    for start, end in literals(piece, query.text):
        yield Span(start, end, ((start, end),))


def _moved(span: Span, by: int) -> Span:
    marks = tuple((start + by, end + by) for start, end in span.marks)
    return Span(span.start + by, span.end + by, marks)


def _shown(file: TextFile, span: Span) -> TextMatch:
    base = max(0, span.start - MARGIN_CHARS)
    text = file.read(base, span.end + MARGIN_CHARS)
    near = _moved(span, -base)
    start, end = excerpt(text, near, size=BUDGETS.excerpt_chars)
    shown, _ = mark(text, start=start, end=end, marks=near.marks)
    return TextMatch(
        shown=shown,
        start=base + start,
        end=base + end,
        match_start=span.start,
        match_end=span.end,
        heading=heading_above(file, span.start),
    )
