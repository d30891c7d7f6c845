"""What a search page costs in bytes, and how it is made to fit: estimated, and from above."""

from dataclasses import replace
from typing import NamedTuple

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


class Cost(NamedTuple):
    """Bytes of one hit: its line, a window's own line with call and fence, the first window whole
    and at its smallest, and the least it takes in structuredContent."""

    line: int
    window: int
    shown: int
    least: int
    structured: int


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
    costs = [_cost(hit, query, budgets.excerpt_chars_min) for hit in hits]
    kept, left = 0, text
    for cost in costs:
        left -= cost.line + cost.window + cost.least
        data -= cost.structured
        if left < 0 or data < 0:
            return max(1, kept)
        kept += 1
    # A window stands once in the text and three times in structuredContent.
    most = min(text, text - left + data // WINDOWS_IN_STRUCTURED)
    _shrink(hits, costs, most, budgets)
    return kept


def _shrink(hits: list[Hit], costs: list[Cost], room: int, budgets: Budgets) -> None:
    """Gives every hit its first window, as large as there is room for, then further ones."""
    full = sum(cost.shown for cost in costs)
    room -= sum(cost.line + cost.window for cost in costs) + full
    if room < 0:
        share = max(0.0, 1 + room / max(1, full))
        for hit in hits:
            hit.matches = [
                _cut(match, share, budgets.excerpt_chars_min) for match in hit.matches[:1]
            ]
        return
    for hit, cost in zip(hits, costs):
        kept = hit.matches[:1]
        for match in hit.matches[1:]:
            room -= cost.window + _size(match.shown)
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


def _cost(hit: Hit, query: int, smallest: int) -> Cost:
    handle, label = _size(hit.id), _size(hit.source.label)
    title = wire.title(hit)
    named = _size(title) if title.isprintable() else 8 * len(title)
    source = label + _size(hit.source.connection_id or "")
    line = HIT_BYTES + handle + named + source + _size(hit.at or "")
    structured = STRUCTURED_HIT_BYTES + 5 * handle + named + 2 * _size(hit.url) + 2 * label
    structured += sum(_size(name) + 3 for name in hit.matched_fields)
    if not hit.matches:
        return Cost(line + handle, 0, 0, 0, structured)
    match = hit.matches[0]
    query = max(query, *(_size(str(one.window.get("query", ""))) for one in hit.matches))
    window = WINDOW_BYTES + handle + query + 2 * _size(match.field_path)
    shown = least = _size(match.shown)
    if len(match.shown) > smallest:
        least = shown * smallest // len(match.shown) + MARKS_BYTES
    structured += STRUCTURED_WINDOW_BYTES + query + WINDOWS_IN_STRUCTURED * least
    return Cost(line, window, shown, least, structured)
