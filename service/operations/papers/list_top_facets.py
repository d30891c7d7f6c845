"""list_top_facets: the most frequent authors, venues, keywords and the like."""

from evidence import papers_wire
from evidence.limits import CONTRACT
from evidence.papers import FACETS, PaperFacets
from renderers.papers import facets as renderer
from service.operations import arguments
from service.operations.base import Arguments, PaperOperation, PaperSession, Route

CATEGORIES = (
    *("author", "venue", "keyword", "institution", "tag"),
    *("year", "month", "template", "language"),
)


class ListTopFacetsArguments(Arguments):
    category = arguments.Choice("What to count.", CATEGORIES, required=True)
    limit = arguments.page_limit(CONTRACT.facets_default)
    offset = arguments.Number("Values to skip, 0 by default.", 0)


def run(
    session: PaperSession, *, category: str, limit: int = CONTRACT.facets_default, offset: int = 0
) -> PaperFacets:
    return session.papers.facets(category, limit=limit, offset=offset)


OPERATION = PaperOperation(
    name=FACETS,
    title="List top facets",
    description=(
        "The values of a category with their number of papers, most frequent first. Use it to "
        "explore the library before searching. Each value has the call that finds its papers."
    ),
    arguments=ListTopFacetsArguments(),
    run=run,
    render=renderer.render,
    fits=renderer.fits,
    wire=papers_wire.facets,
    route=Route("/papers/v1/facets/<category>"),
    examples=({"category": "keyword", "limit": 5},),
)
