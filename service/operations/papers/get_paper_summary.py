"""get_paper_summary: the JSON of one summary, whole or in windows."""

from typing import Any

from evidence import papers_wire
from evidence.limits import CONTRACT
from evidence.papers import SUMMARY, PaperText
from renderers.papers import texts as renderer
from service.operations import arguments
from service.operations.base import Arguments, PaperOperation, PaperSession, Route
from service.ports import TextRead


class GetPaperSummaryArguments(Arguments):
    paper_id = arguments.paper_id()
    template = arguments.Text("One of available_summary_templates; by default the preferred one.")
    max_chars = arguments.Number(
        f"Maximum text of one answer, {CONTRACT.summary_chars:,} characters by default.",
        1,
        CONTRACT.summary_chars_max,
    )
    offset_chars = arguments.offset_chars()


def run(session: PaperSession, **args: Any) -> PaperText:
    return session.papers.summary(TextRead(**args))


OPERATION = PaperOperation(
    name=SUMMARY,
    title="Get a paper's summary",
    description=(
        "The full JSON of one summary of a paper. Call get_paper_metadata first; its "
        "available_summary_templates are the values of template. A cut answer ends in a marker "
        "with the call that continues."
    ),
    arguments=GetPaperSummaryArguments(),
    run=run,
    render=renderer.render,
    wire=papers_wire.text,
    route=Route("/papers/v1/papers/<paper_id>/summary"),
    examples=({"paper_id": "10.5555/rung.tides"},),
)
