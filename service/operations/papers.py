"""The operations on papers: two searches, one paper with its texts, and the values of a category.

Both names of the page size work; paging is by cursor, offset or page number.
"""

from typing import Any

from marshmallow import post_load

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from evidence.papers import BY_KEYWORD, CATEGORIES, FACETS, METADATA, SEARCH, SOURCE, SUMMARY
from evidence.papers import PaperFacets, PaperFinds, PaperOutline, PaperText
from renderers import papers as renderer
from service.operations import arguments
from service.operations.base import Arguments, PaperOperation, PaperSession, Route
from service.ports import PaperSearch, TextRead

PAGING = ("limit", "page_size", "offset", "page", "cursor")


class PagedArguments(Arguments):
    """The arguments of both searches. Loading returns `limit`, and `offset` or `cursor`."""

    limit = arguments.page_limit(CONTRACT.papers_default)
    page_size = arguments.Number("The same as limit.", 1, CONTRACT.page_items)
    offset = arguments.Number(
        f"Papers to skip; offset + limit must be at most {CONTRACT.paper_offset_items:,}.",
        0,
        CONTRACT.paper_offset_items,
    )
    page = arguments.Number("Page number from 1, instead of offset.", 1)
    cursor = arguments.cursor()

    @post_load
    def in_one_way(self, loaded: dict[str, Any], **_: Any) -> dict[str, Any]:
        """The page by `limit`, and by `offset` or `cursor`; raises `InvalidRequest` on a clash."""
        limit = _single(loaded, "limit", "page_size") or CONTRACT.papers_default
        if "page" in loaded and loaded.get("offset") == (loaded["page"] - 1) * limit:
            del loaded["page"]  # the same page twice
        start = _single(loaded, "offset", "page", "cursor")
        rest = {key: value for key, value in loaded.items() if key not in ("page_size", "page")}
        if start is None or "cursor" in loaded:
            return {**rest, "limit": limit}
        offset = start if "offset" in loaded else (start - 1) * limit
        if offset + limit > CONTRACT.paper_offset_items:
            raise InvalidRequest(
                f"offset + limit is {offset + limit:,}; the maximum is "
                f"{CONTRACT.paper_offset_items:,}.",
                param="offset" if "offset" in loaded else "page",
                hint="Narrow the search with more words, or with author:, venue: or year: terms.",
            )
        return {**rest, "limit": limit, "offset": offset}


def _single(paging: dict[str, Any], *names: str) -> Any:
    """The value of the single given name; None if none is given."""
    present = [name for name in names if name in paging]
    if len({paging[name] for name in present}) > 1 or (len(present) > 1 and names[0] != "limit"):
        raise InvalidRequest(f"Use {' or '.join(present)}, not both.", param=present[1])
    return paging[present[0]] if present else None


class SearchPapersArguments(PagedArguments):
    query = arguments.Text(
        'Words, in any form. Required: "a phrase", prefix*, -without, title:word, author:"ada '
        'brandt", venue:, keyword:, tag:, year:2019..2021, a DOI or arXiv id.',
        longest=CONTRACT.query_chars,
        required=True,
    )

    class Meta(PagedArguments.Meta):
        fields = ("query", *PAGING)


SEARCH_PAPERS = PaperOperation(
    name=SEARCH,
    title="Search papers",
    description=(
        "Full-text search over titles, summaries, sources and translations, best match first. "
        "A paper needs one of the words. Each hit has its paper_id, the matching text and the "
        "words it lacks. It matches words, so try synonyms. Pass the paper_id to "
        "get_paper_metadata, get_paper_summary or get_paper_source."
    ),
    arguments=SearchPapersArguments(),
    run=lambda session, query, **page: session.papers.search(PaperSearch(query, **page)),
    render=renderer.render,
    fit=renderer.fit_page,
    route=Route("/papers/v1/search", names={"query": "q"}),
    examples=({"query": "tides", "limit": 5},),
)


class SearchPapersByKeywordArguments(PagedArguments):
    keyword = arguments.Text(
        "Text that a keyword or tag contains; case and accents are ignored.",
        longest=CONTRACT.query_chars,
        required=True,
    )

    class Meta(PagedArguments.Meta):
        fields = ("keyword", *PAGING)


SEARCH_BY_KEYWORD = PaperOperation(
    name=BY_KEYWORD,
    title="Search papers by keyword",
    description=(
        "Papers with a keyword or tag; exact values first, then the newest. Use it if a "
        "subject has a name. list_top_facets lists the keywords and tags."
    ),
    arguments=SearchPapersByKeywordArguments(),
    run=lambda session, keyword, **page: session.papers.by_keyword(PaperSearch(keyword, **page)),
    render=renderer.render,
    fit=renderer.fit_page,
    route=Route("/papers/v1/keywords"),
    examples=({"keyword": "navigation", "limit": 5},),
)


class GetPaperMetadataArguments(Arguments):
    paper_id = arguments.paper_id()


PAPER_METADATA = PaperOperation(
    name=METADATA,
    title="Get paper metadata",
    description=(
        "Authors, venue, year, identifiers, keywords and tags of one paper, its summary "
        "templates and translations, and the size of its source. Call it before "
        "get_paper_summary or get_paper_source."
    ),
    arguments=GetPaperMetadataArguments(),
    run=lambda session, paper_id: renderer.fit_paper(session.papers.paper(paper_id)),
    render=renderer.render,
    route=Route("/papers/v1/papers/<paper_id>"),
    examples=({"paper_id": "10.5555/rung.tides"},),
)


class GetPaperSummaryArguments(Arguments):
    paper_id = arguments.paper_id()
    template = arguments.Text("One of available_summary_templates; by default the preferred one.")
    max_chars = arguments.Number(
        f"Maximum text of one answer, {CONTRACT.summary_chars:,} characters by default.",
        1,
        CONTRACT.summary_chars_max,
    )
    offset_chars = arguments.offset_chars()


PAPER_SUMMARY = PaperOperation(
    name=SUMMARY,
    title="Get a paper's summary",
    description=(
        "The full JSON of one summary of a paper. Call get_paper_metadata first; its "
        "available_summary_templates are the values of template. A cut answer ends in a marker "
        "with the call that continues."
    ),
    arguments=GetPaperSummaryArguments(),
    run=lambda session, **args: session.papers.summary(TextRead(**args)),
    render=renderer.render,
    route=Route("/papers/v1/papers/<paper_id>/summary"),
    examples=({"paper_id": "10.5555/rung.tides"},),
)


class GetPaperSourceArguments(Arguments):
    paper_id = arguments.paper_id()
    lang = arguments.Text("A translation instead of the source, such as zh.")
    max_chars = arguments.Number(
        f"Maximum text of one answer, {CONTRACT.source_chars:,} characters by default; with "
        "query or outline, the size of the reads they offer.",
        1,
        CONTRACT.source_chars_max,
    )
    offset_chars = arguments.offset_chars()
    query = arguments.Text(
        "Search in the text; returns excerpts with offsets.", longest=CONTRACT.query_chars
    )
    outline = arguments.Flag("List the headings with their offsets instead of the text.")


def _source(
    session: PaperSession, *, query: str | None = None, outline: bool = False, **args: Any
) -> PaperText | PaperFinds | PaperOutline:
    papers, read = session.papers, TextRead(**args)
    if query is not None and outline:
        raise InvalidRequest("Use query or outline, not both.", param="outline")
    if outline:
        return renderer.fit_outline(papers.outline(read))
    return papers.source(read) if query is None else papers.find(read, query)


PAPER_SOURCE = PaperOperation(
    name=SOURCE,
    title="Read a paper's source",
    description=(
        "The Markdown text of a paper. It can be very large: max_chars limits one answer, and "
        "a cut answer ends in a marker with the call that continues. In a long paper, start "
        "with outline=true (headings with offsets) or query (search in the text). lang reads a "
        "translation."
    ),
    arguments=GetPaperSourceArguments(),
    run=_source,
    render=renderer.render,
    route=Route(
        "/papers/v1/papers/<paper_id>/source",
        names={"query": "q"},
        variants={"/papers/v1/papers/<paper_id>/outline": {"outline": True}},
    ),
    examples=(
        {"paper_id": "10.5555/rung.tides"},
        {"paper_id": "10.5555/rung.tides", "outline": True},
    ),
)


class ListTopFacetsArguments(Arguments):
    category = arguments.Choice("What to count.", CATEGORIES, required=True)
    limit = arguments.page_limit(CONTRACT.facets_default)
    offset = arguments.Number("Values to skip, 0 by default.", 0)


def _facets(
    session: PaperSession, *, category: str, limit: int = CONTRACT.facets_default, offset: int = 0
) -> PaperFacets:
    return session.papers.facets(category, limit=limit, offset=offset)


TOP_FACETS = PaperOperation(
    name=FACETS,
    title="List top facets",
    description=(
        "The values of a category with their number of papers, most frequent first. Use it to "
        "explore the library before searching. Each value has the call that finds its papers."
    ),
    arguments=ListTopFacetsArguments(),
    run=_facets,
    render=renderer.render,
    fit=renderer.fit_facets,
    route=Route("/papers/v1/facets/<category>"),
    examples=({"category": "keyword", "limit": 5},),
)


#: The papers surface, in the order of the tool list. A test fixes exactly these.
PAPER_OPERATIONS: tuple[PaperOperation, ...] = (
    SEARCH_PAPERS,
    SEARCH_BY_KEYWORD,
    PAPER_METADATA,
    PAPER_SUMMARY,
    PAPER_SOURCE,
    TOP_FACETS,
)
