"""get_paper_source: the Markdown of a paper or a translation, its headings, or finds in it."""

from typing import Any

from evidence import papers_wire
from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from evidence.papers import SOURCE, PaperFinds, PaperOutline, PaperText
from renderers.papers import texts as renderer
from service.operations import arguments
from service.operations.base import Arguments, PaperOperation, PaperSession, Route
from service.ports import TextRead


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


def run(
    session: PaperSession, *, query: str | None = None, outline: bool = False, **args: Any
) -> PaperText | PaperFinds | PaperOutline:
    papers, read = session.papers, TextRead(**args)
    if query is not None and outline:
        raise InvalidRequest("Use query or outline, not both.", param="outline")
    if outline:
        return renderer.fit(papers.outline(read))
    return papers.source(read) if query is None else papers.find(read, query)


OPERATION = PaperOperation(
    name=SOURCE,
    title="Read a paper's source",
    description=(
        "The Markdown text of a paper. It can be very large: max_chars limits one answer, and "
        "a cut answer ends in a marker with the call that continues. In a long paper, start "
        "with outline=true (headings with offsets) or query (search in the text). lang reads a "
        "translation."
    ),
    arguments=GetPaperSourceArguments(),
    run=run,
    render=renderer.render,
    wire=papers_wire.source,
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
