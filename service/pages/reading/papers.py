"""The paper pages: a search with facets, and one paper with its summary, text and translations."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, cast

import orjson
from flask import Response

from evidence.limits import CONTRACT
from evidence.model import Continuation
from evidence.papers import BY_KEYWORD, SEARCH, PaperOutline, PaperPage, PaperText
from service.operations.base import PaperOperation, PaperSession, run_bounded
from service.operations.papers import PAPER_METADATA, PAPER_SOURCE, PAPER_SUMMARY
from service.operations.papers import SEARCH_BY_KEYWORD, SEARCH_PAPERS, TOP_FACETS
from service.pages.reading import markdown, shown
from service.pages.reading.visits import Visits
from service.ports.papers import FacetRequest, SourceRead

FACETS: Final = ("keyword", "author", "venue", "year")
FACET_VALUES: Final = 8
#: Members of a summary that repeat the metadata of its paper, or describe how it was made.
NOT_PROSE: Final = frozenset(
    "keywords provider model prompt_template template_tag extracted_at output_language"
    " available_templates publication_date publication_venue source_hash".split()
)


def search_page(visits: Visits) -> Response:
    """The search box with facets, and the results if there is a query."""
    session, parameters = visits.papers(), shown.parameters("q", "keyword", "cursor")
    if not parameters["q"] and not parameters["keyword"]:
        facets = [TOP_FACETS.run(session, FacetRequest(facet, FACET_VALUES)) for facet in FACETS]
        return visits.page("papers.html", asked=parameters, page=None, facets=facets)
    operation: PaperOperation[Any, PaperPage] = SEARCH_PAPERS
    word = "query"
    if not parameters["q"]:
        operation, word = SEARCH_BY_KEYWORD, "keyword"
    args = {word: parameters["q"] or parameters["keyword"]}
    args |= {"cursor": parameters["cursor"]} if parameters["cursor"] else {}
    page = run_bounded(operation, session, operation.load(args))
    call = Continuation(SEARCH if word == "query" else BY_KEYWORD, args, "search")
    return visits.page("papers.html", asked=parameters, page=page, facets=(), call=call)


def paper_page(visits: Visits) -> Response:
    """One paper: its metadata, and its summary or a part of a text."""
    session, parameters = visits.papers(), shown.parameters("id", "lang", "template", "text", "q")
    paper = PAPER_METADATA.answer(session, PAPER_METADATA.load({"paper_id": parameters["id"]}))
    paper_args: dict[str, Any] = {"paper_id": paper.paper_id, "lang": parameters["lang"] or None}
    whole = SourceRead.of(paper_args)
    outline = finds = None
    text: PaperText | None = None
    fence = ""
    if paper.has_source or parameters["lang"]:
        outline = PAPER_SOURCE.run(session, replace(whole, outline=True))
    if parameters["q"]:
        paper_args |= {"query": parameters["q"], "offset_chars": shown.number("offset", 0)}
        finds = PAPER_SOURCE.answer(session, PAPER_SOURCE.load(paper_args))
    elif parameters["text"] or parameters["lang"]:
        offset = shown.number("offset", 0)
        args = {**paper_args, "offset_chars": offset, "max_chars": shown.PART_CHARS}
        text = cast(PaperText, PAPER_SOURCE.answer(session, PAPER_SOURCE.load(args)))
        fence = _open_fence(session, whole, text.start)
    elif paper.available_summary_templates:
        template = parameters["template"] or paper.preferred_summary_template
        text, fence = _summary(session, paper.paper_id, template)
    if text and text.end < text.total:  # end at a line, unless it is very long
        cut = text.text.rfind("\n", len(text.text) // 2) + 1
        text.text = text.text[:cut] or text.text
    return visits.page(
        "paper.html",
        paper=paper,
        asked=parameters,
        outline=outline,
        finds=finds,
        text=text,
        blocks=markdown.blocks(text.text, fence) if text else (),
        size=shown.PART_CHARS,
        call=_call(paper_args, text, parameters),
    )


def _open_fence(session: PaperSession, whole: SourceRead, position: int) -> str:
    """The open code fence at a position of a text; no heading is inside one."""
    first = max(0, position - CONTRACT.source_chars_max)
    outline = PAPER_SOURCE.run(session, replace(whole, offset_chars=first, outline=True))
    headings = cast(PaperOutline, outline).headings
    start = max((heading.start for heading in headings if heading.start < position), default=first)
    if start >= position:
        return ""
    window = replace(whole, offset_chars=start, max_chars=position - start)
    return markdown.open_fence(session.papers.source(window).text)


def _summary(session: PaperSession, paper_id: str, template: str) -> tuple[PaperText, str]:
    """A part of the sections of a summary as one Markdown text, and the fence open before it."""
    args = PAPER_SUMMARY.load({"paper_id": paper_id, "template": template})
    summary = PAPER_SUMMARY.answer(session, args)
    if summary.complete:
        summary.text = "\n\n".join(_sections(orjson.loads(summary.text)))
        summary.total = len(summary.text)
    summary.start = min(shown.number("offset", 0), summary.total)
    fence = markdown.open_fence(summary.text[: summary.start])
    summary.text = summary.text[summary.start : summary.start + shown.PART_CHARS]
    return summary, fence


def _sections(value: Any) -> Iterator[str]:
    """The prose of a summary, each section under its name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            texts = [] if name in NOT_PROSE or name.startswith("paper_") else [*_sections(inner)]
            if texts:
                yield f"# {name.replace('_', ' ').capitalize()}"
                yield from texts
    elif isinstance(value, list):
        for inner in value:
            yield from _sections(inner)
    elif isinstance(value, str) and value.strip():
        yield value.strip()


def _call(
    paper_args: dict[str, Any], text: PaperText | None, parameters: dict[str, str]
) -> Continuation:
    """The tool call that returns what the page shows."""
    args = {name: value for name, value in paper_args.items() if value}
    if text is None:
        operation = PAPER_SOURCE if parameters["q"] else PAPER_METADATA
        return Continuation(operation.name, args, "find")
    if text.operation == PAPER_SUMMARY.name:
        return Continuation(text.operation, args | {"template": text.template}, "summary")
    return Continuation(text.operation, args | {"offset_chars": text.start}, "source")
