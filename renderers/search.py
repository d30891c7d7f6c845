"""A search page as text: handles first, one line per hit at least, evidence with its call."""

from functools import partial

from evidence import wire
from evidence.model import Hit, SearchPage
from evidence.work import Done
from renderers import search_lines
from renderers.lines import fenced, joined
from renderers.pool import render_many
from renderers.rendering import FENCE_SLOT, Context, Rendering
from renderers.search_size import fits

__all__ = ["fits", "render"]

ESCAPE = "\\u{"  # every escape begins so


def render(page: SearchPage, context: Context) -> Rendering:
    """Both channels of a page that `fits`."""
    numbered = list(enumerate(page.hits, start=1))
    card_of = partial(_card, context)
    weight = sum([len(match.shown) for hit in page.hits for match in hit.matches])
    outcomes = render_many(context.each, card_of, numbered, weight=weight, budgets=context.budgets)
    cards = []
    for (number, hit), outcome in zip(numbered, outcomes):
        if not isinstance(outcome, Done):
            hit.matches = []  # the call that fetches it stands instead, in both channels
        cards.append(outcome.value if isinstance(outcome, Done) else card_of((number, hit)))
    body = joined([*cards, *search_lines.footer(page, context)])
    text = joined([search_lines.header(page, _escapes(page, body)), body])
    structured = wire.search(page, base_url=context.base_url)
    return Rendering((context.close(text),), structured)


def _escapes(page: SearchPage, body: str) -> int:
    """How many escapes stand in the windows of a page; `body` has all that is shown of them."""
    if ESCAPE[0] not in body:  # a look for one character takes next to nothing
        return 0
    return sum(match.shown.count(ESCAPE) for hit in page.hits for match in hit.matches)


def _card(context: Context, numbered: tuple[int, Hit]) -> str:
    """The lines of a hit: what it is, then its windows with their calls."""
    number, hit = numbered
    lines = [search_lines.line(number, hit)]
    for match in hit.matches:
        lines.append(search_lines.evidence_line(match, context))
        lines.append(fenced(FENCE_SLOT, match.shown))
    if not hit.matches:
        lines.append(f"  no proven window; {context.step(hit.fetch)}")
    return joined(lines)
