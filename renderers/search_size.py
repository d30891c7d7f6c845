"""What a search page costs in bytes, and how it is made to fit: estimated, and from above."""

from dataclasses import replace

import orjson

from evidence.find import Span
from evidence.limits import Budgets
from evidence.model import Hit, Match, SearchPage
from evidence.text import excerpt, mark, split

# Our own words around the data of a hit, a window and a page, in bytes, rounded up.
HIT_BYTES = 45
WINDOW_BYTES = 190
PAGE_BYTES = 700
STRUCTURED_HIT_BYTES = 420
STRUCTURED_WINDOW_BYTES = 300
MARKS_BYTES = 13 * 4
TEXT_BYTES_PER_HIT = 820


def fits(page: SearchPage, budgets: Budgets) -> int:
    """How many of the page's hits can be shown, each with its first window; also shrinks the page.

    Second and third windows give way first, then windows shrink; each hit's line, first window
    and call never do.
    """
    hits = page.hits
    query = len(orjson.dumps(str(page.args.get("query", ""))))
    room = min(budgets.text_bytes, max(budgets.search_text_bytes, TEXT_BYTES_PER_HIT * len(hits)))
    room -= PAGE_BYTES + 2 * query + 2 * _size(page.next_cursor or "")
    smallest = budgets.excerpt_chars_min
    lines = [_line_cost(hit) for hit in hits]
    kept = 0
    text, data = room, budgets.structured_bytes - PAGE_BYTES - 2 * query
    for hit, line in zip(hits, lines):
        least = _shown_cost(hit.matches[0], smallest) if hit.matches else 0
        text -= line + (_window_cost(hit, query) + least if hit.matches else 0)
        data -= _structured_cost(hit, query, least)
        if text < 0 or data < 0:
            return max(1, kept)
        kept += 1
    _shrink(hits, room - sum(lines), query, budgets)
    return kept


def _shrink(hits: list[Hit], room: int, query: int, budgets: Budgets) -> None:
    """Gives every hit its first window, as large as there is room for, then further ones."""
    shown = [hit for hit in hits if hit.matches]
    costs = [_window_cost(hit, query) for hit in shown]
    full = [_size(hit.matches[0].shown) for hit in shown]
    room -= sum(costs) + sum(full)
    if room < 0:
        share = max(0.0, 1 + room / max(1, sum(full)))
        for hit in shown:
            hit.matches = [_cut(hit.matches[0], share, budgets.excerpt_chars_min)]
        return
    for hit, cost in zip(shown, costs):
        kept = [hit.matches[0]]
        for match in hit.matches[1:]:
            room -= cost + _size(match.shown)
            if room < 0:
                break
            kept.append(match)
        hit.matches = kept


def _cut(match: Match, share: float, smallest: int) -> Match:
    """The same window around the same match, smaller."""
    text, marks = split(match.shown)
    size = max(smallest, int(len(text) * share) - 1)
    if len(text) <= size:
        return match
    span = Span(marks[0][0], marks[0][1], marks[:1]) if marks else Span(0, 0, ((0, 0),))
    start, end = excerpt(text, span, size=size)
    base = match.start
    return replace(
        match,
        shown=mark(text, start=start, end=end, marks=marks)[0],
        start=None if base is None else base + start,
        end=None if base is None else base + end,
        complete=False,
    )


def _size(text: str) -> int:
    """UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode())


def _line_cost(hit: Hit) -> int:
    title = hit.title or ""
    shown = _size(title) if title.isprintable() else 8 * len(title)
    source = hit.source
    labels = _size(source.label) + _size(source.connection_id or "")
    return HIT_BYTES + _size(hit.id) + min(shown, 700) + labels + len(hit.at or "")


def _window_cost(hit: Hit, query: int) -> int:
    """Bytes of a window's own line, its call and its fence."""
    return WINDOW_BYTES + _size(hit.id) + query + 2 * _size(hit.matches[0].field_path)


def _shown_cost(match: Match, size: int) -> int:
    """Bytes of a window when it is cut to about `size` code points."""
    length = len(match.shown)
    whole = _size(match.shown)
    return whole if length <= size else whole * size // length + MARKS_BYTES


def _structured_cost(hit: Hit, query: int, shown: int) -> int:
    ids = 5 * _size(hit.id) + 2 * _size(hit.title or "") + 2 * _size(hit.url)
    windows = STRUCTURED_WINDOW_BYTES + query + 3 * shown if hit.matches else 0
    return STRUCTURED_HIT_BYTES + ids + 2 * _size(hit.source.label) + windows
