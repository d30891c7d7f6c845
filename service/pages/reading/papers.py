"""Pages of papers: a search with facets, and one paper with its summary, text and translations."""

from collections.abc import Iterator
from typing import Any, Final, cast

import orjson
from flask import Response

from evidence.model import Continuation
from evidence.papers import BY_KEYWORD, SEARCH, PaperText
from service.operations.base import PaperSession, run_bounded
from service.operations.papers import (
    get_paper_metadata,
    get_paper_source,
    get_paper_summary,
    list_top_facets,
    search_papers,
    search_papers_by_keyword,
)
from service.pages.reading import shown
from service.pages.reading.visits import Visits

FACETS: Final = ("keyword", "author", "venue", "year")
FACET_VALUES: Final = 8
#: Members of a summary that repeat the metadata of its paper, or describe how it was made.
NOT_PROSE: Final = frozenset(
    "keywords provider model prompt_template template_tag extracted_at output_language"
    " available_templates publication_date publication_venue source_hash".split()
)


def search_page(visits: Visits) -> Response:
    """The box with facets, and the results if something was asked for."""
    session, asked = visits.papers(), shown.given("q", "keyword", "cursor")
    if not asked["q"] and not asked["keyword"]:
        facets = [
            list_top_facets.run(session, category=category, limit=FACET_VALUES)
            for category in FACETS
        ]
        return visits.page("papers.html", asked=asked, page=None, facets=facets)
    operation, word = search_papers.OPERATION, "query"
    if not asked["q"]:
        operation, word = search_papers_by_keyword.OPERATION, "keyword"
    args = {word: asked["q"] or asked["keyword"]}
    args |= {"cursor": asked["cursor"]} if asked["cursor"] else {}
    page = run_bounded(operation, session, operation.load(args))
    call = Continuation(SEARCH if word == "query" else BY_KEYWORD, args, "search")
    return visits.page("papers.html", asked=asked, page=page, facets=(), call=call)


def paper_page(visits: Visits) -> Response:
    """One paper: its metadata, and its summary or a part of a text."""
    session, asked = visits.papers(), shown.given("id", "lang", "template", "text", "q")
    paper = get_paper_metadata.run(
        session, **get_paper_metadata.OPERATION.load({"paper_id": asked["id"]})
    )
    named: dict[str, Any] = {"paper_id": paper.paper_id, "lang": asked["lang"] or None}
    outline = finds = None
    text: PaperText | None = None
    if paper.has_source or asked["lang"]:
        outline = get_paper_source.run(session, **named, outline=True)
    if asked["q"]:
        args = get_paper_source.OPERATION.load({**named, "query": asked["q"]})
        finds = get_paper_source.run(session, **args)
    elif asked["text"] or asked["lang"]:
        args = {**named, "offset_chars": shown.number("offset", 0), "max_chars": shown.PART_CHARS}
        load = get_paper_source.OPERATION.load
        text = cast(PaperText, get_paper_source.run(session, **load(args)))
    elif paper.available_summary_templates:
        text = _summary(session, paper.paper_id, asked["template"] or None)
    return visits.page(
        "paper.html",
        paper=paper,
        asked=asked,
        outline=outline,
        finds=finds,
        text=text,
        paragraphs=shown.paragraphs(text.text) if text else (),
        size=shown.PART_CHARS,
        call=_call(named, text, asked),
    )


def _summary(session: PaperSession, paper_id: str, template: str | None) -> PaperText:
    """A part of the sections of a summary, as one text."""
    args = get_paper_summary.OPERATION.load({"paper_id": paper_id, "template": template})
    found: PaperText = get_paper_summary.run(session, **args)
    if found.complete:
        found.text = "\n\n".join(_sections(orjson.loads(found.text)))
        found.total = len(found.text)
    found.start = min(shown.number("offset", 0), found.total)
    found.text = found.text[found.start : found.start + shown.PART_CHARS]
    return found


def _sections(value: Any) -> Iterator[str]:
    """The prose of a summary, section by section, each under its name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            texts = [] if name in NOT_PROSE or name.startswith("paper_") else [*_sections(inner)]
            if texts:
                yield name.replace("_", " ").capitalize()
                yield from texts
    elif isinstance(value, list):
        for inner in value:
            yield from _sections(inner)
    elif isinstance(value, str) and value.strip():
        yield value.strip()


def _call(named: dict[str, Any], text: PaperText | None, asked: dict[str, str]) -> Continuation:
    """The call of an agent that answers what the page shows."""
    args = {name: value for name, value in named.items() if value}
    if text is None:
        query = {"query": asked["q"]} if asked["q"] else {}
        operation = get_paper_source.OPERATION if query else get_paper_metadata.OPERATION
        return Continuation(operation.name, args | query, "find")
    if text.operation == get_paper_summary.OPERATION.name:
        return Continuation(text.operation, args | {"template": text.template}, "summary")
    return Continuation(text.operation, args | {"offset_chars": text.start}, "source")
