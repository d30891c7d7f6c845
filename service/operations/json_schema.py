"""Converts a marshmallow schema to the JSON Schema subset that all model vendors support.

apispec reads fields and validators; its output is narrowed to object roots, one scalar type per
property, typed items, and none of `$ref`, `anyOf`, `default`, `format`, `nullable`. An unmapped
field class raises at import, so every enforced limit is also shown.

Vendors differ about objects with any names. Gemini refuses an object without properties, so
`FIELD` stands for all of them. Converters to OpenAI's strict mode would allow no others, so the
object is explicitly open; they then leave the tool as it is. At the root, Gemini's converter fails
on `additionalProperties`, so it is left out: the server refuses unknown arguments anyway.
"""

from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import Schema

from evidence.limits import CONTRACT
from evidence.operators import OPERATORS
from service.ports import types

#: Without minimum lengths, which are all 1, and without the largest whole number: every bound costs
#: bytes in every conversation, and no caller exceeds these by mistake.
KEYWORDS = ("type", "description", "enum", "items", "minimum", "maximum", "maxLength", "maxItems")
_SCALAR = {"type": ["string", "number", "boolean"], "maxLength": CONTRACT.filter_value_chars}
_RANGE = {
    "type": "object",
    "minProperties": 1,
    "properties": {operator: _SCALAR for operator in OPERATORS},
    "additionalProperties": False,
}
_NAMES = {"minLength": 1, "pattern": r"^[^\[\]\x00]+$"}
#: The same for schemas that need not work for every model vendor.
OPEN: dict[type, dict[str, Any]] = {
    types.TypedFilter: {
        "type": "object",
        "minProperties": 1,
        "maxProperties": CONTRACT.filter_fields,
        "propertyNames": _NAMES,
        "additionalProperties": {"anyOf": [_SCALAR, _RANGE]},
    },
    types.ExpandLimit: {
        "type": "object",
        "minProperties": 1,
        "propertyNames": _NAMES,
        "additionalProperties": {"type": "integer", "minimum": 1, "maximum": CONTRACT.whole_number},
    },
}


def tool_schema(declared: Schema) -> dict[str, Any]:
    """The `inputSchema` of a tool."""
    converter = OpenAPIConverter("3.0.3", lambda schema: None, None)  # type: ignore[arg-type]
    properties = {key: _property(converter, key, field) for key, field in declared.fields.items()}
    required = [name for name, field in declared.fields.items() if field.required]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def property_of(name: str, field: Any) -> dict[str, Any]:
    """The full schema of one argument, without its description."""
    converter = OpenAPIConverter("3.1.0", lambda schema: None, None)  # type: ignore[arg-type]
    property_schema = dict(OPEN.get(type(field)) or converter.field2property(field))
    property_schema.pop("description", None)
    return property_schema


def _property(converter: Any, name: str, field: Any) -> dict[str, Any]:
    if type(field) in OPEN:
        name, shape = field.placeholder
        return {
            "type": "object",
            "description": field.metadata["description"],
            "properties": {name: {"type": shape}},
            "additionalProperties": {},
        }
    schema = converter.field2property(field)
    if not isinstance(schema.get("type"), str):
        raise TypeError(f"{name}: {type(field).__name__} has no JSON Schema; map it in OPEN")
    return _narrow(schema)


def _narrow(schema: dict[str, Any]) -> dict[str, Any]:
    narrow = {key: schema[key] for key in KEYWORDS if key in schema}
    if narrow.get("maximum") == CONTRACT.whole_number:
        del narrow["maximum"]
    if "items" in narrow:
        narrow["items"] = _narrow(narrow["items"])
    return narrow
