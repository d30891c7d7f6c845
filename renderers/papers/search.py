"""A page of papers as text: one line per paper, its snippet in a fence, the next call."""

from dataclasses import replace

from evidence import papers_wire
from evidence.limits import CONTRACT, Budgets
from evidence.papers import SEARCH, PaperHit, PaperMatch, PaperPage
from renderers.rendering import (
    FENCE_SLOT,
    Context,
    Rendering,
    fenced,
    header,
    joined,
    quoted,
    value_of,
)
from renderers.papers.fit import most

AUTHORS_SHOWN = 3
ESCAPE = "\\u{"


def fits(page: PaperPage, budgets: Budgets) -> int | None:
    """The number of hits that fit the budget of a search page; None if all do."""
    small = len(page.hits) <= CONTRACT.papers_default
    return most(
        len(page.hits),
        lambda kept, context: render(replace(page, hits=page.hits[:kept]), context),
        budgets,
        text_bytes=budgets.search_text_bytes if small else budgets.text_bytes,
    )


def render(page: PaperPage, context: Context) -> Rendering:
    """Both channels of a page that `fits`."""
    word = "query" if page.operation == SEARCH else "keyword"
    escapes = sum(hit.snippet.count(ESCAPE) for hit in page.hits)
    facts = {
        word: str(page.args.get(word, "")),
        "papers": len(page.hits),
        "all": page.counts and page.counts.all,
        "some": page.counts and page.counts.some,
        "offset": page.offset or None,
        "has_more": page.has_more,
        "escaped": escapes or None,
    }
    lines = [header(page.operation, **facts)]
    for number, hit in enumerate(page.hits, start=page.offset + 1):
        lines += _hit(number, hit, context)
    lines += _footer(page)
    lines += [context.step(continuation) for continuation in page.continuations()]
    structured = papers_wire.page(page, papers_wire.as_calls)
    return Rendering((context.close(joined(lines)),), structured)


def _hit(number: int, hit: PaperHit, context: Context) -> list[str]:
    line = f"{number} {hit.paper_id} {quoted(hit.title)} {value_of(hit.year)}"
    if hit.venue:
        line += f" venue={value_of(hit.venue)}"
    if hit.authors:
        line += f" authors={_authors(hit)}"
    line += _match(hit.match) if hit.match else ""
    line += f" matched_in={hit.place}" if hit.place else " preview of its summary:"
    steps = [f"  {context.step(continuation)}" for continuation in hit.continuations()]
    return [line, *([fenced(FENCE_SLOT, hit.snippet)] if hit.snippet else []), *steps]


def _match(match: PaperMatch) -> str:
    """The query words a hit has in another form, and those it lacks; "" if neither."""
    if not match.missing and not match.forms:
        return ""
    total = len(match.words) + len(match.missing)
    line = f" matched {len(match.words)} of {total}"
    if match.forms:
        forms = (f"{quoted(form)} for {quoted(word)}" for word, form in match.forms.items())
        line += f" ({', '.join(forms)})"
    if match.missing:
        line += f", missing: {', '.join(map(value_of, match.missing))}"
    return line


def _authors(hit: PaperHit) -> str:
    more = hit.authors_total - len(hit.authors[:AUTHORS_SHOWN])
    names = "; ".join(hit.authors[:AUTHORS_SHOWN])
    return quoted(f"{names}; {more} more" if more > 0 else names)


def _footer(page: PaperPage) -> list[str]:
    lines = []
    if page.ended_early:
        lines.append("The page ended early to stay within its size; next_page goes on.")
    if page.has_more and page.next_cursor is None:
        lines.append(
            f"Pages end at {CONTRACT.paper_offset_items:,} papers. Narrow the search to see others."
        )
    if page.offset and not page.hits:
        lines.append("The papers end before this offset.")
    elif not page.hits:
        lines.append(
            "Nothing matched. Try fewer or other words, prefix*, or list_top_facets to see what "
            "there is."
        )
    return lines
