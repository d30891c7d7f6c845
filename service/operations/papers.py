"""The operations on papers: two searches, one paper with its texts, and the values of a category.

Both names of the page size work; paging is by cursor, offset or page number.
"""

from typing import Any

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS, CONTRACT
from evidence.papers import PaperFinds, PaperOutline, PaperText
from renderers import papers as renderer
from service.operations.base import PaperOperation, PaperSession, Route
from service.ports.papers import FacetRequest, KeywordQuery, PaperQuery, PaperRead, SourceRead
from service.ports.papers import SummaryRead

SEARCH_PAPERS = PaperOperation(
    title="Search papers",
    description=(
        "Search the full text of titles, summaries, sources and translations, best match first. "
        "A hit may lack some of the words. Each hit includes its paper_id, the matching text and "
        "the words that the paper lacks. If you find too few papers, try synonyms. Pass the "
        "paper_id to get_paper_metadata, get_paper_summary or get_paper_source."
    ),
    request=PaperQuery,
    run=lambda session, request: session.papers.search(request),
    render=renderer.render,
    fit=renderer.fit_page,
    route=Route("/papers/v1/search"),
    examples=({"query": "tides", "limit": 5},),
)


SEARCH_BY_KEYWORD = PaperOperation(
    title="Search papers by keyword",
    description=(
        "List papers whose keywords or tags contain the given text, exact matches first. "
        "Use this for subjects with an established name. list_top_facets lists keywords and tags."
    ),
    request=KeywordQuery,
    run=lambda session, request: session.papers.by_keyword(request),
    render=renderer.render,
    fit=renderer.fit_page,
    route=Route("/papers/v1/keywords"),
    examples=({"keyword": "navigation", "limit": 5},),
)


PAPER_METADATA = PaperOperation(
    title="Get paper metadata",
    description=(
        "Return the authors, venue, year, identifiers, keywords and tags of one paper, its "
        "summary templates and translations, and the size of its source. Call this before "
        "get_paper_summary or get_paper_source."
    ),
    request=PaperRead,
    run=lambda session, request: renderer.fit_paper(session.papers.paper(request.paper_id)),
    render=renderer.render,
    route=Route("/papers/v1/papers/<paper_id>"),
    examples=({"paper_id": "10.5555/rung.tides"},),
)


PAPER_SUMMARY = PaperOperation(
    title="Get a paper's summary",
    description=(
        "Return one summary of a paper as JSON. First call get_paper_metadata, which lists the "
        "valid values of `template` as available_summary_templates. A truncated answer ends with "
        "the call for the rest."
    ),
    request=SummaryRead,
    run=lambda session, read: session.papers.summary(read),
    render=renderer.render,
    answer_chars=2 * CONTRACT.summary_chars_max + BUDGETS.structured_bytes,
    route=Route("/papers/v1/papers/<paper_id>/summary"),
    examples=({"paper_id": "10.5555/rung.tides"},),
)


def _source(session: PaperSession, read: SourceRead) -> PaperText | PaperFinds | PaperOutline:
    if read.query is not None and read.outline:
        raise InvalidRequest("Use query or outline, not both.", param="outline")
    if read.outline:
        return renderer.fit_outline(session.papers.outline(read))
    if read.query is not None:
        return session.papers.find(read, read.query)
    return session.papers.source(read)


PAPER_SOURCE = PaperOperation(
    title="Read a paper's source",
    description=(
        "Return a paper's Markdown text, which can be very long. `max_chars` limits one answer; a "
        "truncated answer ends with the call for the rest. For a long paper, start with "
        "`outline=true` (headings with offsets) or `query` (search in the text). "
        "Set `lang` for a translation."
    ),
    request=SourceRead,
    run=_source,
    render=renderer.render,
    answer_chars=2 * CONTRACT.source_chars_max + BUDGETS.structured_bytes,
    route=Route(
        "/papers/v1/papers/<paper_id>/source",
        variants={"/papers/v1/papers/<paper_id>/outline": {"outline": True}},
    ),
    examples=(
        {"paper_id": "10.5555/rung.tides"},
        {"paper_id": "10.5555/rung.tides", "outline": True},
    ),
)


TOP_FACETS = PaperOperation(
    title="List the most frequent values of a category",
    description=(
        "Explore the library before you search: list a category's values, most frequent first. "
        "Each value comes with its number of papers and the call that finds them."
    ),
    request=FacetRequest,
    run=lambda session, request: session.papers.facets(request),
    render=renderer.render,
    fit=renderer.fit_facets,
    route=Route("/papers/v1/facets/<category>"),
    examples=({"category": "keyword", "limit": 5},),
)


#: The papers surface, in the order of the tool list. A test fixes exactly these.
PAPER_OPERATIONS: tuple[PaperOperation[Any, Any], ...] = (
    SEARCH_PAPERS,
    SEARCH_BY_KEYWORD,
    PAPER_METADATA,
    PAPER_SUMMARY,
    PAPER_SOURCE,
    TOP_FACETS,
)
