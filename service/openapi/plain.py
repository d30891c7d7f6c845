"""What is served without a token beside the data: health, discovery, descriptions."""

from typing import Any

from service.openapi.shapes import (
    ANYTHING,
    MAYBE_TEXT,
    TEXT,
    Shape,
    body,
    open_map,
    ref,
    told,
    word,
)

SHAPES: dict[str, Shape] = {
    "Index": body(
        "What is served, and at which paths.",
        {"object": word("pdpp_discovery_index"), "version": TEXT, "links": open_map(TEXT)},
        {"resource_name": TEXT, "role": TEXT},
    ),
    "Health": body("The process is running.", {"status": word("ok")}, {}),
    "Readiness": body(
        "`ready`, or the reason.",
        {"status": TEXT},
        {"reason": MAYBE_TEXT, "papers": open_map(ANYTHING), "upstream": open_map(ANYTHING)},
    ),
    "JsonRpcAnswer": body(
        "`result` or `error`, and the id of the message.",
        {"jsonrpc": word("2.0")},
        {
            "id": {"type": ["integer", "string", "null"]},
            "result": ANYTHING,
            "error": body("", {"code": {"type": "integer"}, "message": TEXT}, {"data": ANYTHING}),
        },
    ),
    "JsonRpcAnswers": {
        "description": "One answer, or a list of them to a list of messages.",
        "oneOf": [ref("JsonRpcAnswer"), {"type": "array", "items": ref("JsonRpcAnswer")}],
    },
    "OpenApi": told({"type": "object", "required": ["openapi", "paths"]}, "This document."),
}


def _json(shape: str) -> dict[str, Any]:
    return {"application/json": {"schema": ref(shape)}}


def _get(name: str, summary: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    responses = {"200": {"description": "The answer.", "content": content}, **more}
    found = {"operationId": name, "summary": summary, "tags": ["server"]}
    return {"get": {**found, "security": [], "responses": responses}}


_PAGE: dict[str, Any] = {"text/html": {"schema": TEXT}}
_UNREADY = {"description": "Not ready, with the reason.", "content": _json("Readiness")}

PATHS: dict[str, Any] = {
    "/": _get("index", "The services here; a page for browsers", {**_json("Index"), **_PAGE}),
    "/healthz": _get("healthz", "Whether the process is running", _json("Health")),
    "/readyz": _get(
        "readyz", "Whether the data is available", _json("Readiness"), **{"503": _UNREADY}
    ),
    "/openapi.json": _get("openapi", "This document", _json("OpenApi")),
    "/llms.txt": _get("llms", "This server for models", {"text/plain": {"schema": TEXT}}),
    "/docs/api": _get("api_viewer", "This document for people", _PAGE),
}
