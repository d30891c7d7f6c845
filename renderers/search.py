"""A search page as text: handles first, one line per hit at least, evidence with its call."""

from evidence import wire
from evidence.model import SearchPage
from renderers import search_lines
from renderers.lines import fenced, joined, step
from renderers.rendering import FENCE_SLOT, Context, Rendering
from renderers.search_size import fits

__all__ = ["fits", "render"]

ESCAPE = "\\u{"


def render(page: SearchPage, context: Context) -> Rendering:
    """Both channels of a page that `fits`."""
    lines: list[str] = []
    escapes = 0
    for number, hit in enumerate(page.hits, start=1):
        lines.append(search_lines.line(number, hit))
        for match in hit.matches:
            lines.append(search_lines.evidence_line(hit, match))
            lines.append(fenced(FENCE_SLOT, match.shown))
            escapes += match.shown.count(ESCAPE)
        if not hit.matches:
            lines.append(f"  no proven window; {step(hit.fetch)}")
    text = joined([search_lines.header(page, escapes), *lines, *search_lines.footer(page)])
    structured = wire.search(page, base_url=context.base_url)
    return Rendering((context.close(text),), structured)
