"""get_paper_metadata: the metadata of one paper, and the texts it has."""

from evidence import papers_wire
from evidence.papers import METADATA, Paper
from renderers.papers import metadata as renderer
from service.operations import arguments
from service.operations.base import Arguments, PaperOperation, PaperSession, Route


class GetPaperMetadataArguments(Arguments):
    paper_id = arguments.paper_id()


def run(session: PaperSession, *, paper_id: str) -> Paper:
    return renderer.fit(session.papers.paper(paper_id))


OPERATION = PaperOperation(
    name=METADATA,
    title="Get paper metadata",
    description=(
        "Authors, venue, year, identifiers, keywords and tags of one paper, its summary "
        "templates and translations, and the size of its source. Call it before "
        "get_paper_summary or get_paper_source."
    ),
    arguments=GetPaperMetadataArguments(),
    run=run,
    render=renderer.render,
    wire=papers_wire.paper,
    route=Route("/papers/v1/papers/<paper_id>"),
    examples=({"paper_id": "10.5555/rung.tides"},),
)
