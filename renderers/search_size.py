"""What a search page costs in bytes, and how it is made to fit: estimated, and from above."""

from dataclasses import dataclass, replace
from functools import lru_cache

from evidence import wire
from evidence.find import Span
from evidence.limits import Budgets
from evidence.model import Hit, Match, SearchPage, Source
from evidence.size import json_bytes
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


@dataclass(slots=True)
class Cost:
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
    around = json_bytes(joined([search_lines.header(page, 0), *search_lines.footer(page)]))
    room = min(budgets.text_bytes, max(budgets.search_text_bytes, TEXT_BYTES_PER_HIT * len(hits)))
    text, data = room - around, budgets.structured_bytes - STRUCTURED_PAGE_BYTES - 3 * around
    query = str(page.args.get("query", ""))
    query_size = json_bytes(query)
    costs = [_cost(hit, query, query_size, budgets.excerpt_chars_min) for hit in hits]
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
    full = sum([cost.shown for cost in costs])
    room -= sum([cost.line + cost.window for cost in costs]) + full
    if room < 0:
        share = max(0.0, 1 + room / max(1, full))
        for hit in hits:
            hit.matches = [
                _cut(match, share, budgets.excerpt_chars_min) for match in hit.matches[:1]
            ]
        return
    for hit, cost in zip(hits, costs):
        if len(hit.matches) < 2:
            continue
        kept = hit.matches[:1]
        for match in hit.matches[1:]:
            room -= cost.window + json_bytes(match.shown)
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


@lru_cache(maxsize=512)
def _sizes(source: Source) -> tuple[int, int]:
    """Bytes of a source's label and of its connection id."""
    return json_bytes(source.label), json_bytes(source.connection_id or "")


def _cost(hit: Hit, query: str, query_size: int, smallest: int) -> Cost:
    """`query` is what the page was asked for; reads by it are told apart from others at a look."""
    handle = json_bytes(hit.id)
    label, connection = _sizes(hit.source)
    title = wire.title(hit)
    named = json_bytes(title) if title.isprintable() else 8 * len(title)
    line = HIT_BYTES + handle + named + label + connection + json_bytes(hit.at or "")
    structured = STRUCTURED_HIT_BYTES + 5 * handle + named + 2 * json_bytes(hit.url) + 2 * label
    for name in hit.matched_fields:
        structured += json_bytes(name) + 3
    if not hit.matches:
        return Cost(line + handle, 0, 0, 0, structured)
    match = hit.matches[0]
    for one in hit.matches:
        asked = one.read.args.get("query", query)
        if asked is not query and asked != query:
            query_size = max(query_size, json_bytes(str(asked)))
    window = WINDOW_BYTES + handle + query_size + 2 * json_bytes(match.field_path)
    shown = least = json_bytes(match.shown)
    if len(match.shown) > smallest:
        least = shown * smallest // len(match.shown) + MARKS_BYTES
    structured += STRUCTURED_WINDOW_BYTES + query_size + WINDOWS_IN_STRUCTURED * least
    return Cost(line, window, shown, least, structured)
