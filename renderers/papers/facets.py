"""Facet values as text: a line each, with the call that finds its papers."""

from dataclasses import replace

from evidence import papers_wire
from evidence.limits import Budgets
from evidence.papers import PaperFacets
from renderers.rendering import Context, Rendering, header, joined, value_of
from renderers.papers.fit import most


def fits(facets: PaperFacets, budgets: Budgets) -> int | None:
    """The number of values that fit a tool result; None if all do."""
    return most(
        len(facets.values),
        lambda kept, context: render(replace(facets, values=facets.values[:kept]), context),
        budgets,
    )


def render(facets: PaperFacets, context: Context) -> Rendering:
    """Both channels of a list that `fits`."""
    lines = [
        header(
            "list_top_facets",
            category=facets.category,
            values=len(facets.values),
            offset=facets.offset or None,
            of=facets.total,
        )
    ]
    for value, count in facets.values:
        lines.append(f"{count} {value_of(value)} {context.step(facets.search(value))}")
    if facets.ended_early:
        lines.append("The list ended early to stay within its size; next_page goes on.")
    lines += [context.step(continuation) for continuation in facets.continuations()]
    structured = papers_wire.facets(facets, papers_wire.as_calls)
    return Rendering((joined(lines),), structured)
