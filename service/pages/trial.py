"""`/try`: a form for every tool, built from its schema; the browser makes the calls itself.

This route receives nothing typed into the page; the token is sent only in the header of the calls.
A link can fill the form of one tool with `?tool=…&arguments=…`, a JSON object.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson
from flask import Response, request

from evidence.text import json_line
from service.mcp.versions import MODERN
from service.operations import OPERATIONS
from service.operations.base import Operation
from service.operations.papers import PAPER_OPERATIONS
from service.pages.holdings import PAPERS, RECORDS, holdings
from service.pages.layout import Layout
from service.running.readiness import readiness

PATH: Final = "/try"
TOOLS: Final[dict[str, Sequence[Operation]]] = {RECORDS: OPERATIONS, PAPERS: PAPER_OPERATIONS}
#: Tools to show first; the page opens the first available one.
BEGINNING: Final = ("search", "search_papers")
#: The input of an argument, by its JSON type. One with an `enum` is a "choice".
KINDS: Final = {
    "string": "text",
    "integer": "number",
    "boolean": "flag",
    "array": "list",
    "object": "object",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One argument: its JSON Schema, and its initial text."""

    name: str
    id: str
    kind: str
    required: bool
    shape: Mapping[str, Any]
    value: str


@dataclass(frozen=True, slots=True)
class Form:
    """One tool. `examples` are arguments as JSON; the first fills the form.

    Arguments that are not required, given or in an example are collapsed.
    """

    operation: Operation
    shown: Sequence[Field]
    folded: Sequence[Field]
    examples: Sequence[str]


def page(layout: Layout) -> Response:
    """The page with the form that `?tool=` names; the default is a search."""
    mounted = holdings(layout, readiness(layout.services))
    surfaces = [(each, [_form(operation) for operation in TOOLS[each.name]]) for each in mounted]
    names = [form.operation.name for _, forms in surfaces for form in forms]
    wanted = (request.args.get("tool", ""), *BEGINNING)
    return layout.page(
        "try.html",
        here=PATH,
        surfaces=surfaces,
        chosen=next(name for name in wanted if name in names),
        revision=MODERN[0],
    )


def _form(operation: Operation) -> Form:
    """The form of a tool, filled with the arguments in the URL if they are for this tool."""
    schema, filled = operation.tool["inputSchema"], operation.examples[0]
    if request.args.get("tool") == operation.name:
        with suppress(orjson.JSONDecodeError):
            given = orjson.loads(request.args.get("arguments", ""))
            filled = given if given and isinstance(given, dict) else filled
    required = schema.get("required", ())
    fields = [
        Field(
            name,
            f"{operation.name}-{name}",
            "choice" if "enum" in shape else KINDS[shape["type"]],
            name in required,
            shape,
            _typed(filled.get(name)),
        )
        for name, shape in schema["properties"].items()
    ]
    used = {name for example in (filled, *operation.examples) for name in example} | {*required}
    return Form(
        operation,
        [field for field in fields if field.name in used],
        [field for field in fields if field.name not in used],
        [json_line(example) for example in operation.examples],
    )


def _typed(value: Any) -> str:
    """A value as text for a form field."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return value if isinstance(value, str) else json_line(value)
