"""`/try`: a form for every tool, made from its schema; the browser makes the calls itself.

This route receives nothing typed into the page; the token goes only into the header of the
calls. A link can fill the form of one tool with `?tool=…&arguments=…`, a JSON object.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from flask import Blueprint, Response, request

from service.mcp.versions import MODERN
from service.operations import OPERATIONS
from service.operations.base import Operation
from service.operations.papers import PAPER_OPERATIONS
from service.pages.forms import Form, form
from service.pages.holdings import PAPERS, RECORDS, Holding, holdings
from service.pages.layout import Layout
from service.running.readiness import readiness

PATH: Final = "/try"
TOOLS: Final[dict[str, Sequence[Operation]]] = {RECORDS: OPERATIONS, PAPERS: PAPER_OPERATIONS}
#: Tools to show first: the page opens the first one available.
BEGINNING: Final = ("search", "search_papers")


@dataclass(frozen=True, slots=True)
class Surface:
    """One MCP endpoint and the forms of its tools."""

    holding: Holding
    forms: tuple[Form, ...]


def add(routes: Blueprint, layout: Layout) -> None:
    """Adds the page."""
    routes.add_url_rule(PATH, "trial", lambda: _page(layout))


def _page(layout: Layout) -> Response:
    """The page with the form that `?tool=` names, by default a search."""
    mounted = holdings(layout, readiness(layout.services))
    surfaces = [
        Surface(each, tuple(_form(operation) for operation in TOOLS[each.name])) for each in mounted
    ]
    names = [found.name for surface in surfaces for found in surface.forms]
    wanted = (request.args.get("tool", ""), *BEGINNING)
    return layout.page(
        "try.html",
        here=PATH,
        surfaces=surfaces,
        chosen=next(name for name in wanted if name in names),
        revision=MODERN[0],
    )


def _form(operation: Operation) -> Form:
    """The form of a tool, filled with the arguments of the address if they are for it."""
    given: Any = None
    if request.args.get("tool") == operation.name:
        try:
            given = orjson.loads(request.args.get("arguments", ""))
        except orjson.JSONDecodeError:
            pass
    return form(operation, given if isinstance(given, dict) else None)
