"""The few JSON Schema shapes that routes are described with (draft 2020-12, OpenAPI 3.1)."""

from typing import Any

Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}


def ref(name: str) -> Shape:
    """A shape among the components."""
    return {"$ref": f"#/components/schemas/{name}"}
