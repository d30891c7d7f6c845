"""What a search page costs in bytes, and how it is made to fit: estimated, and from above."""

from dataclasses import replace

import orjson

from evidence import wire
from evidence.find import Span
from evidence.limits import Budgets
from evidence.model import Hit, Match, SearchPage
from evidence.text import excerpt, mark, split
from renderers import search_lines
from renderers.lines import joined

# Our own words around the data of a hit and a window, in bytes, rounded up.
HIT_BYTES = 45
WINDOW_BYTES = 190
STRUCTURED_PAGE_BYTES = 600
STRUCTURED_HIT_BYTES = 450
STRUCTURED_WINDOW_BYTES = 330
MARKS_BYTES = 13 * 4
WINDOWS_IN_STRUCTURED = 3
TEXT_BYTES_PER_HIT = 820


def fits(page: SearchPage, budgets: Budgets) -> int:
    """How many of the page's hits can be shown, each with its first window; also shrinks the page.

    Second and third windows give way first, then windows shrink; each hit's line, first window
    and call never do.
    """
    hits = page.hits
    around = _size(joined([search_lines.header(page, 0), *search_lines.footer(page)]))
    room = min(budgets.text_bytes, max(budgets.search_text_bytes, TEXT_BYTES_PER_HIT * len(hits)))
    text, data = room - around, budgets.structured_bytes - STRUCTURED_PAGE_BYTES - 3 * around
    query = _size(str(page.args.get("query", "")))
    smallest = budgets.excerpt_chars_min
    lines = [_line_cost(hit) for hit in hits]
    kept, left = 0, text
    for hit, line in zip(hits, lines):
        least = _shown_cost(hit.matches[0], smallest) if hit.matches else 0
        left -= line + (_window_cost(hit, query) + least if hit.matches else 0)
        data -= _structured_cost(hit, query, least)
        if left < 0 or data < 0:
            return max(1, kept)
        kept += 1
    # A window stands once in the text and three times in structuredContent.
    most = min(text, text - left + data // WINDOWS_IN_STRUCTURED)
    _shrink(hits, most - sum(lines), query, budgets)
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
    """UTF-8 bytes inside JSON, which is never less than as plain text."""
    return len(orjson.dumps(text)) - 2


def _line_cost(hit: Hit) -> int:
    source = hit.source
    title = wire.title(hit)
    shown = _size(title) if title.isprintable() else 8 * len(title)
    labels = _size(source.label) + _size(source.connection_id or "")
    return HIT_BYTES + _size(hit.id) + shown + labels + _size(hit.at or "")


def _window_cost(hit: Hit, query: int) -> int:
    """Bytes of a window's own line, its call and its fence."""
    return WINDOW_BYTES + _size(hit.id) + query + 2 * _size(hit.matches[0].field_path)


def _shown_cost(match: Match, size: int) -> int:
    """Bytes of a window when it is cut to about `size` code points."""
    length = len(match.shown)
    whole = _size(match.shown)
    return whole if length <= size else whole * size // length + MARKS_BYTES


def _structured_cost(hit: Hit, query: int, shown: int) -> int:
    ids = 5 * _size(hit.id) + _size(wire.title(hit)) + 2 * _size(hit.url)
    names = sum(_size(name) + 3 for name in hit.matched_fields) + 2 * _size(hit.source.label)
    windows = STRUCTURED_WINDOW_BYTES + query + WINDOWS_IN_STRUCTURED * shown if hit.matches else 0
    return STRUCTURED_HIT_BYTES + ids + names + windows
