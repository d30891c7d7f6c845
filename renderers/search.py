"""A search page as text: handles first, one line per hit at least, evidence with its call."""

from evidence import hits_wire
from evidence.hits import Hit, SearchPage
from evidence.model import Source
from renderers import search_lines
from renderers.lines import joined
from renderers.rendering import Context, Rendering
from renderers.search_size import fit

__all__ = ["fit", "render"]

ESCAPE = "\\u{"  # every escape begins so


def render(page: SearchPage, context: Context) -> Rendering:
    """Both channels of a page that went through `fit`."""
    alike, first = search_lines.has_one_source(page), dict[Source, Hit]()
    for hit in page.hits:
        first.setdefault(hit.source, hit)
    cards = [
        search_lines.card(number, hit, context, one_source=alike, keyed=hit is first[hit.source])
        for number, hit in page.numbered()
    ]
    body = joined([*cards, *search_lines.footer(page, context)])
    text = joined([search_lines.header(page, _escapes(page, body)), body])
    structured = hits_wire.search(page, base_url=context.base_url)
    return Rendering((context.close(text),), structured)


def _escapes(page: SearchPage, body: str) -> int:
    """How many escapes stand in the windows of a page; `body` has all that is shown of them."""
    if ESCAPE[0] not in body:  # a look for one character takes next to nothing
        return 0
    return sum(match.shown.count(ESCAPE) for hit in page.hits for match in hit.matches)
