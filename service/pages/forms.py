"""Tools as forms: each argument of a tool's schema is a field, in the words of the schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evidence.text import json_line
from service.operations.base import Operation

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
