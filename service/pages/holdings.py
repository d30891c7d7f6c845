"""Describes the address and the surfaces of this server to visitors without a token."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from flask import request

from service.bootstrap import Services
from service.pages.layout import Layout
from service.running.readiness import READY

#: A host as browsers send it: a name or an IP address, with or without a port.
_HOST: Final = re.compile(r"([a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?")


def base_url(services: Services) -> str:
    """The public address if set, else the one the browser used, without a slash.

    An invalid host is not repeated: the address is then a loopback one.
    """
    settings = services.settings
    if settings.public_url:
        return settings.public_url
    host = request.headers.get("Host", "").lower()
    if _HOST.fullmatch(host) is None:
        return f"http://127.0.0.1:{settings.port}"
    return f"{request.scheme}://{host}"


RECORDS, PAPERS = "records", "papers"


@dataclass(frozen=True, slots=True)
class Holding:
    """One surface: its data, its readers, and the paths of MCP and REST. `open` needs no token.

    In `about`, backticks mark code.
    """

    name: str
    title: str
    about: str
    access: str
    open: bool
    mcp: str
    rest: str


def holdings(layout: Layout, state: Mapping[str, Any]) -> list[Holding]:
    """The surfaces of this server, at least one.

    They contain nothing that requires a token: neither names nor counts.
    """
    services, surfaces = layout.services, list[Holding]()
    if services.authority is not None:
        sources = ["the store on this server"] if services.store else []
        sources += ["another PDPP resource server"] if services.upstream else []
        about = f"From {' and '.join(sources)}." if sources else "From other servers."
        access = "You need a client token, and can read what its grant covers."
        path = layout.mcp_path
        surfaces.append(Holding(RECORDS, "Records", about, access, False, path, "/v1"))
    if services.papers is not None:
        closed, papers = bool(services.settings.papers_tokens), state["papers"]
        about = "Research papers from a snapshot."
        if not closed and papers["status"] == READY:
            noun = "paper" if papers["papers"] == 1 else "papers"
            about = f"{papers['papers']:,} {noun}, snapshot `{papers['snapshot']}`."
        access = "You need a token for the papers." if closed else "Open: no token is needed."
        path, title = layout.papers_path, "Research papers"
        surfaces.append(Holding(PAPERS, title, about, access, not closed, path, "/papers/v1"))
    return surfaces


@dataclass(frozen=True, slots=True)
class Contents:
    """The number of records of the store or of one source, with the dates of the first and last."""

    label: str
    records: int
    first: str | None
    last: str | None
    parts: tuple["Contents", ...] = ()


def contents(services: Services) -> Contents | None:
    """The contents of the store by source; None unless the settings show them to everyone."""
    if services.store is None or services.settings.show_contents != "on":
        return None
    sources: dict[str, list[Contents]] = {}
    for overview in services.store.overview():
        stream = Contents(overview.label, overview.records, overview.first, overview.last)
        sources.setdefault(overview.connection, []).append(stream)
    return _sum("", [_sum(label, streams) for label, streams in sorted(sources.items())])


def _sum(label: str, parts: list[Contents]) -> Contents:
    dates = [date for part in parts for date in (part.first, part.last) if date]
    first, last = (min(dates), max(dates)) if dates else (None, None)
    return Contents(label, sum(part.records for part in parts), first, last, tuple(parts))


def health(services: Services, state: Mapping[str, Any]) -> tuple[bool, tuple[str, ...]]:
    """(True if everything is available, messages about problems)."""
    messages = []
    if "reason" in state:
        messages.append(f"Records cannot be read: {state['reason']}")
    papers = state.get("papers", {})
    if papers.get("status") not in (None, READY):
        messages.append(f"Papers cannot be read: {papers['refused']}")
    elif "refused" in papers:
        messages.append(f"A newer snapshot was refused: {papers['refused']}")
    if state.get("upstream", {}).get("failing"):
        messages.append("The upstream resource server is not answering at the moment.")
    return state["status"] == READY, tuple(messages)
