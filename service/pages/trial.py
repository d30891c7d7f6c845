"""`/try`: a form for every tool, made from its schema; the browser makes the calls itself.

This route receives nothing typed into the page; the token goes only into the header of the
calls. A link can fill the form of one tool with `?tool=…&arguments=…`, a JSON object.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from flask import Blueprint, Response, request

from evidence.text import json_line
from service.mcp.versions import MODERN
from service.operations import OPERATIONS
from service.operations.base import Operation
from service.operations.papers import PAPER_OPERATIONS
from service.pages.holdings import PAPERS, RECORDS, Holding, holdings
from service.pages.layout import Layout
from service.running.readiness import readiness

#: The input of a field, by the JSON type of the argument. One with an `enum` is a "choice".
KINDS: Final = {
    "string": "text",
    "integer": "number",
    "boolean": "flag",
    "array": "list",
    "object": "object",
}
SAID: Final = {
    "list": "One per line, or separated by commas.",
    "object": "A JSON object.",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One argument. `value` is its initial text."""

    name: str
    id: str
    kind: str
    description: str
    required: bool
    least: int | None
    most: int | None
    choices: tuple[str, ...]
    value: str


@dataclass(frozen=True, slots=True)
class Form:
    """One tool. `examples` are arguments as JSON; the first fills the form."""

    name: str
    title: str
    description: str
    shown: tuple[Field, ...]
    folded: tuple[Field, ...]
    examples: tuple[str, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.shown + self.folded


def form(operation: Operation, given: Mapping[str, Any] | None = None) -> Form:
    """The form of an operation, filled with `given` or its first example.

    Arguments that are neither needed, given nor in an example are folded.
    """
    schema, first = operation.tool["inputSchema"], given or operation.examples[0]
    required = schema.get("required", ())
    fields = [
        _field(operation.name, name, found, name in required, first)
        for name, found in schema["properties"].items()
    ]
    used = {name for example in (first, *operation.examples) for name in example} | {*required}
    return Form(
        operation.name,
        operation.title,
        operation.description,
        tuple(field for field in fields if field.name in used),
        tuple(field for field in fields if field.name not in used),
        tuple(json_line(example) for example in operation.examples),
    )


def _field(
    tool: str, name: str, schema: Mapping[str, Any], required: bool, filled: Mapping[str, Any]
) -> Field:
    kind = "choice" if "enum" in schema else KINDS[schema["type"]]
    choices = ("true", "false") if kind == "flag" else tuple(map(str, schema.get("enum", ())))
    return Field(
        name=name,
        id=f"{tool}-{name}",
        kind=kind,
        description=" ".join(filter(None, (schema["description"], SAID.get(kind)))),
        required=required,
        least=schema.get("minimum"),
        most=schema.get("maximum"),
        choices=choices,
        value=_typed(filled.get(name)),
    )


def _typed(value: Any) -> str:
    """A value as text for a form field."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return value if isinstance(value, str) else json_line(value)


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
