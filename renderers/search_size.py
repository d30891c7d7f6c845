"""Fits a search page to the bytes of both channels, as a new page."""

from collections.abc import Sequence
from dataclasses import replace

import orjson

from evidence.find import Span
from evidence.hits import Hit, Match, SearchPage, result, rung, structured
from evidence.limits import CONTRACT, Budgets
from evidence.text import excerpt, mark, split
from evidence.work import Each, serial
from renderers import rendering, search
from renderers.rendering import joined

TEXT_BYTES_PER_HIT = 820
#: Reserve for text added later: the address before each path, and that the page ended early.
ADDRESS = "https://" + 56 * "x"
LATER_BYTES = 200
#: Cuts fall between words, and marks stay whole: a share is an estimate.
ROUNDING = 0.95
#: Characters of a quote that stay free beside its marks, so that it begins and ends at words.
EDGES = 16


class Room:
    """The bytes that the hits of a page may take in both channels."""

    def __init__(self, page: SearchPage, budgets: Budgets) -> None:
        most = max(budgets.search_text_bytes, TEXT_BYTES_PER_HIT * len(page.hits))
        around = joined([search.header(page, 99), *search.footer(page)])
        self.text = min(budgets.text_bytes, most) - len(around.encode()) - LATER_BYTES
        empty = orjson.dumps(structured(replace(page, hits=page.hits[:1])))
        self.data = budgets.structured_bytes - len(empty) - LATER_BYTES

    def holds(self, costs: Sequence[tuple[int, int]]) -> bool:
        """True if hits of these bytes fit."""
        return (
            sum([text for text, _ in costs]) <= self.text
            and sum([data for _, data in costs]) <= self.data
        )

    def share(self, costs: Sequence[tuple[int, int]], least: Sequence[tuple[int, int]]) -> float:
        """The share of their text that windows can keep, between all and the least."""
        share = 1.0
        for channel, most in enumerate((self.text, self.data)):
            smallest = sum([cost[channel] for cost in least])
            whole = sum([cost[channel] for cost in costs])
            if whole > most:
                share = min(share, (most - smallest) / (whole - smallest))
        return share * ROUNDING


def fit(page: SearchPage, budgets: Budgets, each: Each = serial) -> SearchPage:
    """The page cut to fit, with fewer hits if not all fit.

    `each` cuts the windows of a heavy page, such as the whole fields that other servers may send.

    The first three hits keep up to three windows, later ones a quoted excerpt. Second and third
    windows give way first, then windows shrink; each hit's line, first window and call never do.
    """
    numbers = [number for number, _ in page.numbered()]
    page, hits = _with_cut_windows(page, budgets, each)
    room, costs = Room(replace(page, hits=hits), budgets), list(map(_cost, numbers, hits))
    while not room.holds(costs) and (place := _most_windows(hits)) is not None:
        hits[place] = replace(hits[place], matches=hits[place].matches[:-1])
        costs[place] = _cost(numbers[place], hits[place])
    if room.holds(costs):
        return replace(page, hits=hits)
    least = [_shrunk(hit, 0.0, budgets) for hit in hits]
    smallest = list(map(_cost, numbers, least))
    if not room.holds(smallest):
        kept = next(n for n in range(len(hits), -1, -1) if room.holds(smallest[:n]))
        return replace(page, hits=least[: max(1, kept)])
    share = room.share(costs, smallest)
    shrunk = [_shrunk(hit, share, budgets) for hit in hits]
    fits = room.holds(list(map(_cost, numbers, shrunk)))
    return replace(page, hits=shrunk if fits else least)


def _with_cut_windows(
    page: SearchPage, budgets: Budgets, each: Each
) -> tuple[SearchPage, list[Hit]]:
    """(the page, its hits with the detail of their ranks); a late hit loses its windows."""

    def reduced(numbered: tuple[int, Hit]) -> Hit:
        return _reduced(numbered[1], numbered[0], budgets)

    numbered = page.numbered()
    chars = sum([len(one.shown) for hit in page.hits for one in hit.matches])
    if chars <= rendering.HEAVY_PAGE_CHARS:
        return page, list(map(reduced, numbered))
    hits, missed = rendering.rendered_each(
        reduced, numbered, each, late=lambda one: replace(one[1], matches=[])
    )
    if missed:
        page = replace(page, warnings=[*page.warnings, rendering.late_warning(len(missed))])
    return page, hits


def _most_windows(hits: Sequence[Hit]) -> int | None:
    """The last of the hits with most windows; None if no hit has several."""
    most = max(len(hit.matches) for hit in hits)
    if most < 2:
        return None
    return max(place for place, hit in enumerate(hits) if len(hit.matches) == most)


def _reduced(hit: Hit, number: int, budgets: Budgets) -> Hit:
    """The hit with the detail of its rank; other servers may send longer windows than ours."""
    if search.is_full(number):
        windows, size = CONTRACT.windows_per_hit, budgets.excerpt_chars
        return replace(hit, matches=[_cut(one, size) for one in hit.matches[:windows]])
    return replace(hit, matches=[_quote(one, budgets) for one in hit.matches[:1]])


def _quote(match: Match, budgets: Budgets) -> Match:
    """The excerpt of a later hit: a short field is quoted whole."""
    whole = match.complete and len(split(match.shown)[0]) <= CONTRACT.quote_chars
    return match if whole else _cut(match, budgets.cut_quote_chars)


def _shrunk(hit: Hit, share: float, budgets: Budgets) -> Hit:
    """The hit with its first window only, of which a share is left."""
    matches = [
        _cut(match, max(budgets.excerpt_chars_min, int(len(match.shown) * share)))
        for match in hit.matches[:1]
    ]
    return replace(hit, matches=matches)


def _cut(match: Match, size: int) -> Match:
    """The same window around the same match, of at most `size` code points."""
    if len(match.shown) <= size:  # tags and escapes only make it longer
        return match
    text, marks = split(match.shown)
    if len(text) <= size:
        return match
    start, end = excerpt(text, _densest(text, marks, size), size=size)
    base = match.start
    return replace(
        match,
        shown=mark(text, start=start, end=end, marks=marks)[0],
        start=None if base is None else base + start,
        end=None if base is None else base + end,
        complete=False,
    )


def _densest(text: str, marks: Sequence[tuple[int, int]], size: int) -> Span:
    """The marks with most different words within `size` code points of each other."""
    best = Span(0, 0, ((0, 0),))
    most = 0
    for first, (start, _) in enumerate(marks):
        near = [one for one in marks[first:] if one[1] - start <= size - EDGES] or marks[
            first : first + 1
        ]
        words = {word for one in near for word in text[one[0] : one[1]].lower().split()}
        if len(words) > most:
            most, best = len(words), Span(start, near[-1][1], tuple(near))
    return best


def _cost(number: int, hit: Hit) -> tuple[int, int]:
    """Bytes of a hit in the text and in structured content, separators included."""
    text = search.card(number, hit)
    data = orjson.dumps([result(hit, ADDRESS), rung(hit)])
    return len(text.encode()) + 1, len(data)
