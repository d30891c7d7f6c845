"""search_papers: papers by words, with a proven snippet each."""

from typing import Any

from evidence import papers_wire
from evidence.limits import CONTRACT
from evidence.papers import SEARCH, PaperPage
from renderers.papers import search as renderer
from service.operations import arguments
from service.operations.base import PaperOperation, PaperSession, Route
from service.operations.papers.paging import PagedArguments
from service.ports import PaperSearch


class SearchPapersArguments(PagedArguments):
    query = arguments.Text(
        'Words, in any form. Required: "a phrase", prefix*, -without, title:word, author:"ada '
        'brandt", venue:, keyword:, tag:, year:2019..2021, a DOI or arXiv id.',
        longest=CONTRACT.query_chars,
        required=True,
    )

    class Meta(PagedArguments.Meta):
        fields = ("query", "limit", "page_size", "offset", "page", "cursor")


def run(session: PaperSession, *, query: str, **page: Any) -> PaperPage:
    return session.papers.search(PaperSearch(query, **page))


OPERATION = PaperOperation(
    name=SEARCH,
    title="Search papers",
    description=(
        "Full-text search over titles, summaries, sources and translations, best match first. "
        "A paper needs one of the words. Each hit has its paper_id, the matching text and the "
        "words it lacks. Pass the paper_id to get_paper_metadata, get_paper_summary or "
        "get_paper_source."
    ),
    arguments=SearchPapersArguments(),
    run=run,
    render=renderer.render,
    fits=renderer.fits,
    wire=papers_wire.page,
    route=Route("/papers/v1/search", names={"query": "q"}),
    examples=({"query": "tides", "limit": 5},),
)
