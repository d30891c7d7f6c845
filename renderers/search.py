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

ESCAPE = "\\u{"


def render(page: SearchPage, context: Context) -> Rendering:
    """Both channels of a page that `fits`."""
    weight = sum(len(match.shown) for hit in page.hits for match in hit.matches)
    numbered = list(enumerate(page.hits, start=1))
    card_of = partial(_card, context)
    outcomes = render_many(context.each, card_of, numbered, weight=weight, budgets=context.budgets)
    lines: list[str] = []
    escapes = 0
    for (number, hit), outcome in zip(numbered, outcomes):
        if not isinstance(outcome, Done):
            hit.matches = []  # the call that fetches it stands instead, in both channels
        card = outcome.value if isinstance(outcome, Done) else card_of((number, hit))
        lines += card
        escapes += sum(match.shown.count(ESCAPE) for match in hit.matches)
    text = joined([search_lines.header(page, escapes), *lines, *search_lines.footer(page, context)])
    structured = wire.search(page, base_url=context.base_url)
    return Rendering((context.close(text),), structured)


def _card(context: Context, numbered: tuple[int, Hit]) -> list[str]:
    """The lines of a hit: what it is, then its windows with their calls."""
    number, hit = numbered
    lines = [search_lines.line(number, hit)]
    for match in hit.matches:
        lines += [search_lines.evidence_line(hit, match, context), fenced(FENCE_SLOT, match.shown)]
    return lines if hit.matches else [*lines, f"  no proven window; {context.step(hit.fetch)}"]
