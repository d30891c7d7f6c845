"""The metadata of a paper as text: one line per kind of fact, then the calls that read it."""

from dataclasses import replace

from evidence import papers_wire
from evidence.limits import BUDGETS, Budgets
from evidence.papers import Paper
from evidence.text import escape
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

LISTS = ("authors", "keywords", "institutions", "tags", "available_summary_templates", "languages")


def fit(paper: Paper, budgets: Budgets = BUDGETS) -> Paper:
    """The paper with its lists as long as a tool result holds; `left_out` counts the rest."""
    longest = max(len(getattr(paper, name)) for name in LISTS)
    kept = most(longest, lambda count, context: render(_cut(paper, count), context), budgets)
    return paper if kept is None else _cut(paper, kept)


def _cut(paper: Paper, count: int) -> Paper:
    left_out = dict(paper.left_out)
    for name in LISTS:
        dropped = len(getattr(paper, name)) - count
        if dropped > 0:
            left_out[name] = left_out.get(name, 0) + dropped
    shorter = {name: getattr(paper, name)[:count] for name in LISTS}
    return replace(paper, **shorter, left_out=left_out)


def render(paper: Paper, context: Context) -> Rendering:
    """Both channels of a paper that was `fit`."""
    preview, in_preview = escape(paper.summary_preview)
    bibtex, in_bibtex = escape(paper.bibtex or "")
    lines = [
        header(
            "get_paper_metadata",
            paper_id=paper.paper_id,
            year=paper.year or None,
            escaped=in_preview + in_bibtex or None,
        ),
        f"title: {quoted(paper.title)}",
        *_list(paper, "authors"),
        *_facts(
            venue=paper.venue,
            published=paper.publication_date,
            doi=paper.doi,
            arxiv_id=paper.arxiv_id,
            bibtex_key=paper.bibtex_key,
            language=paper.output_language,
        ),
        *_list(paper, "keywords"),
        *_list(paper, "institutions"),
        *_list(paper, "tags"),
        _texts(paper),
    ]
    if preview:
        lines += ["preview of the summary:", fenced(FENCE_SLOT, preview)]
    if bibtex:
        lines += ["bibtex:", fenced(FENCE_SLOT, bibtex)]
    lines += [context.step(continuation) for continuation in paper.continuations()]
    structured = papers_wire.paper(paper, papers_wire.as_calls)
    return Rendering((context.close(joined(lines)),), structured)


def _facts(**known: str | None) -> list[str]:
    shown = [f"{name}={value_of(value)}" for name, value in known.items() if value]
    return [" ".join(shown)] if shown else []


def _list(paper: Paper, name: str) -> list[str]:
    values: list[str] = getattr(paper, name)
    more = paper.left_out.get(name, 0)
    if not values:
        return []
    shown = "; ".join(quoted(value) for value in values)
    tail = f"; {more} more stand in the summary and the source" if more else ""
    return [f"{name} ({len(values) + more}): {shown}{tail}"]


def _texts(paper: Paper) -> str:
    """The readable texts of the paper."""
    size = f" source_bytes={paper.source_bytes}" if paper.source_bytes is not None else ""
    templates = _names(paper, "available_summary_templates", "template")
    languages = _names(paper, "languages", "language")
    return (
        f"preferred_summary_template={value_of(paper.preferred_summary_template)}"
        f" available_summary_templates=[{templates}] has_source={value_of(paper.has_source)}{size}"
        f" translations=[{languages}] has_pdf={value_of(paper.has_pdf)}"
    )


def _names(paper: Paper, name: str, category: str) -> str:
    """Templates or languages, and where to find the names that did not fit."""
    shown = ", ".join(value_of(each) for each in getattr(paper, name))
    more = paper.left_out.get(name, 0)
    tail = f"; {more} more, all named by list_top_facets with category={category}" if more else ""
    return f"{shown}{tail}"
