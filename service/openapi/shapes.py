"""The few JSON Schema shapes that bodies are put together from (draft 2020-12, OpenAPI 3.1).

Objects stay open: members that are not named here may come, from Rung or from an upstream.
"""

from typing import Any

Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}
MAYBE_TEXT: Shape = {"type": ["string", "null"]}
WHOLE: Shape = {"type": "integer"}
MAYBE_WHOLE: Shape = {"type": ["integer", "null"]}
FLAG: Shape = {"type": "boolean"}
ANYTHING: Shape = {}
TEXTS: Shape = {"type": "array", "items": TEXT}


def ref(name: str) -> Shape:
    """A shape among the components."""
    return {"$ref": f"#/components/schemas/{name}"}


def told(shape: Shape, description: str) -> Shape:
    """A shape with what it means."""
    return {**shape, "description": description}


def word(*words: str) -> Shape:
    """One of a few words."""
    return {"const": words[0]} if len(words) == 1 else {"type": "string", "enum": list(words)}


def many(shape: Shape) -> Shape:
    return {"type": "array", "items": shape}


def open_map(shape: Shape) -> Shape:
    """An object whose member names are data."""
    return {"type": "object", "additionalProperties": shape}


def body(description: str, required: dict[str, Shape], optional: dict[str, Shape]) -> Shape:
    """An object; members not named may come too."""
    return {
        "type": "object",
        "description": description,
        "required": list(required),
        "properties": {**required, **optional},
    }
