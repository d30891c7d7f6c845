"""What the official suite calls by name, on the protocol core that ships.

The suite scores a server by tools and resources it names itself (`test_*`, `test://…`). They
stand here beside ordinary tools, and nowhere in the product.
"""

import os
from typing import Any

from flask import Flask

from service.access.guard import Access, Guard, loopback_origins
from service.mcp.blueprint import blueprint
from service.mcp.surface import NEEDS_CAPABILITY
from tests.helpers.fixture_surface import (
    ANY_OBJECT,
    TOOLS,
    FixtureSurface,
    Tool,
    open_session,
    text_result,
    tool,
)

#: One red pixel, and a moment of silence.
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5Erk"
    "Jggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
EMBEDDED = {
    "type": "resource",
    "resource": {"uri": "test://static-text", "mimeType": "text/plain", "text": "static text"},
}

#: The schema the suite publishes and expects back, keyword for keyword.
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

SAMPLING = {NEEDS_CAPABILITY: "sampling"}
REGION = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}


def answering(name: str, *blocks: dict[str, Any], **more: Any) -> Tool:
    """A tool that answers `blocks` to everything; `more` goes into its list entry."""
    schema = more.pop("schema", ANY_OBJECT)
    failed = {"isError": True} if more.pop("fails", False) else {}
    found = {"content": list(blocks), **failed} if blocks else text_result("Done.", **failed)
    entry = tool(name, "Exists for the conformance suite.", schema, **more)
    return entry, lambda arguments, session: found


NAMED_BY_THE_SUITE: tuple[Tool, ...] = (
    answering("test_simple_text"),
    answering("test_image_content", IMAGE),
    answering("test_audio_content", AUDIO),
    answering("test_embedded_resource", EMBEDDED),
    answering("test_multiple_content_types", {"type": "text", "text": "all"}, IMAGE, EMBEDDED),
    answering("test_error_handling", fails=True),
    answering("test_logging_tool"),
    answering("test_streaming_elicitation"),
    answering("test_missing_capability", _meta=SAMPLING),
    answering("test_x_mcp_header", schema=REGION),
    answering("json_schema_2020_12_tool", schema=SCHEMA_2020_12),
)


class ConformanceSurface(FixtureSurface):
    """The fixture surface with what the suite asks for added."""

    templates = (
        *FixtureSurface.templates,
        {"uriTemplate": "test://template/{id}/data", "name": "template"},
    )

    def __init__(self) -> None:
        super().__init__(tools=(*TOOLS, *NAMED_BY_THE_SUITE))

    def read(self, uri: str, session: Any) -> list[dict[str, Any]]:
        if uri == "test://static-text":
            return [EMBEDDED["resource"]]  # type: ignore[list-item]
        if uri == "test://static-binary":
            return [{"uri": uri, "mimeType": "image/png", "blob": PNG}]
        if uri.startswith("test://template/"):
            number = uri.removeprefix("test://template/").removesuffix("/data")
            return [{"uri": uri, "mimeType": "application/json", "text": f'{{"id":"{number}"}}'}]
        return super().read(uri, session)


def create_app() -> Flask:
    """The surface at `/mcp`, open, for pages of its own port."""
    app = Flask(__name__)
    guard = Guard(Access.OPEN, loopback_origins(int(os.environ["PORT"])))
    found = blueprint(ConformanceSurface(), path="/mcp", guard=guard, open_session=open_session)
    app.register_blueprint(found)
    return app
