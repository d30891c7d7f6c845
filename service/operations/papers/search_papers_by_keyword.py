"""search_papers_by_keyword: papers with a matching keyword or tag."""

from typing import Any

from evidence import papers_wire
from evidence.limits import CONTRACT
from evidence.papers import BY_KEYWORD, PaperPage
from renderers.papers import search as renderer
from service.operations import arguments
from service.operations.base import PaperOperation, PaperSession, Route
from service.operations.papers.paging import PagedArguments
from service.ports import PaperSearch


class SearchPapersByKeywordArguments(PagedArguments):
    keyword = arguments.Text(
        "Text that a keyword or tag contains; case and accents are ignored.",
        longest=CONTRACT.query_chars,
        required=True,
    )

    class Meta(PagedArguments.Meta):
        fields = ("keyword", "limit", "page_size", "offset", "page", "cursor")


def run(session: PaperSession, *, keyword: str, **page: Any) -> PaperPage:
    return session.papers.by_keyword(PaperSearch(keyword, **page))


OPERATION = PaperOperation(
    name=BY_KEYWORD,
    title="Search papers by keyword",
    description=(
        "Papers with a keyword or tag; exact values first, then the newest. Use it if a "
        "subject has a name. list_top_facets lists the keywords and tags."
    ),
    arguments=SearchPapersByKeywordArguments(),
    run=run,
    render=renderer.render,
    fits=renderer.fits,
    wire=papers_wire.page,
    route=Route("/papers/v1/keywords"),
    examples=({"keyword": "navigation", "limit": 5},),
)
