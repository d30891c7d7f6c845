"""The records page with filters: search results, a list, or the streams and sources."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final
from urllib.parse import quote

from flask import Response

from evidence.hits import Hit, SearchPage
from evidence.model import Continuation, Source, label_of
from evidence.records import Record
from evidence.schema import Connector
from service.operations.base import Session, run_bounded
from service.operations.records import SEARCH
from service.pages.reading import lists, records, shown
from service.pages.reading.visits import Visits

SOURCES_MAX: Final = 100
STREAMS_MAX: Final = 60
NAMES_BYTES: Final = 12_000
#: The parameters of a search or of a list.
PARAMETERS: Final = ("q", "person", "stream", "source", "since", "until", "sort", "words", "cursor")


def search_page(visits: Visits) -> Response:
    """The search box with results, or a list of records, or else what the token can read."""
    session = visits.records()
    parameters = shown.parameters(*PARAMETERS, "before")
    connectors = session.rs.connectors().value.connectors
    kinds = sorted({row.stream.name for connector in connectors for row in connector.rows})
    context: dict[str, Any] = {"asked": parameters, "sources": _sources(connectors), "page": None}
    kinds = kinds[: _fitting(kinds, SOURCES_MAX)]
    context |= {"label_of": label_of, "kinds": kinds, "listing": None}
    person = re.sub(r'["\s]+', " ", parameters["person"]).strip()
    query = " ".join(filter(None, (parameters["q"], f'from:"{person}"' if person else "")))
    narrowed = any(parameters[name] for name in ("stream", "since", "until", "source"))
    if narrowed and not parameters["q"]:
        among = lists.streams(session, parameters["stream"], parameters["source"])
        if not person or not any(stream.searches_people for stream in among):
            return _list_page(visits, session, among, context)
    if not query:
        rows = session.rs.streams().value.rows
        count = _fitting([row.name for row in rows], STREAMS_MAX)
        return visits.page("search.html", **context, rows=rows[:count], more=len(rows) - count)
    args: dict[str, Any] = {"query": query, "connection_id": parameters["source"]}
    args |= {name: parameters[name] for name in ("since", "words", "cursor")}
    args |= {"streams": [parameters["stream"]] if parameters["stream"] else None}
    args["sort"] = parameters["sort"] or (None if parameters["q"] else "newest")
    args |= {"limit": None if parameters["q"] else lists.PAGE, "until": lists.ended(parameters)}
    args = {name: value for name, value in args.items() if value}
    page = run_bounded(SEARCH, session, SEARCH.load(args))
    next_page = _earlier(page, parameters) if args.get("sort") == "newest" else None
    people = _people(session, page.hits)
    context["page"] = page
    return visits.page(
        "search.html",
        **context,
        next_page=next_page,
        results=[(hit, _of_hit(hit, query), people.get(hit.id, "")) for hit in page.hits],
        call=Continuation("search", args, "search"),
    )


def _fitting(names: Sequence[str], most: int) -> int:
    """How many of these names a page has room for, at most `most`."""
    sizes = accumulate(len(quote(name)) for name in names[:most])
    return sum(size <= NAMES_BYTES for size in sizes)


def _earlier(page: SearchPage, parameters: dict[str, str]) -> str | None:
    """The address of earlier matches, because a search for the newest has one page.

    Hits of the last time are left to that page, unless there are no others.
    """
    last = page.hits[-1].at if page.left_out else None
    if last is None:
        return None
    page.hits[:] = [hit for hit in page.hits if hit.at != last] or page.hits
    before = lists.moment(page.hits[-1].at or "", "before")
    return shown.search(**{**parameters, "before": lists.text_of(before)}) if before else None


def _list_page(
    visits: Visits, session: Session, among: list[lists.Stream], context: dict[str, Any]
) -> Response:
    """The newest records of some streams, without a search."""
    parameters = context["asked"]
    listing = lists.page(session, among, parameters)
    following = {name: value for name, value in listing.following.items() if value}
    context["listing"] = listing
    return visits.page(
        "search.html",
        **context,
        results=list(zip(records.links(listing.records), map(_beginning, listing.records))),
        next_page=shown.search(**{**parameters, "cursor": "", **following}) if following else None,
    )


def _beginning(record: Record) -> str:
    """The beginning of the text of a record that has a title too."""
    names = [record.roles.get(role) for role in ("primary-title", "primary-text")]
    title, text = (record.data.get(name) if name else None for name in names)
    return shown.plain(text) if title and text else ""


def _sources(connectors: Sequence[Connector]) -> list[Source]:
    """The first sources of the grant, sorted by label."""
    every = {source for entry in connectors for row in entry.rows for source in row.connections}
    identified = [source for source in every if source.connection_id]
    return sorted(identified, key=lambda source: (label_of(source), source.connection_id))[
        :SOURCES_MAX
    ]


def _people(session: Session, hits: list[Hit]) -> dict[str, str]:
    """The person of each hit, only from stores of this server, because each takes a read."""
    if not session.is_local:
        return {}
    return {hit.id: records.person_of(session.rs.record(hit.ref).value) for hit in hits}


def _of_hit(hit: Hit, query: str) -> str:
    """The address of a hit's page, at its first window unless that is a whole field."""
    if hit.related is None and (not hit.matches or hit.matches[0].complete):
        return shown.record(hit.id, q=query)
    read = (hit.related or hit.matches[0]).read.args
    position = {"match": read.get("match"), "offset": read.get("offset_chars")}
    return shown.record(hit.id, q=query, field=read["field_path"], **position)
