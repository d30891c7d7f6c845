"""The OpenAPI 3.1 document of the mounted routes, built from the operations and their schemas.

`parts/` has what does not depend on an operation: the schemas of bodies, the headers, the routes of
the server itself, of blobs and of MCP.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson

from evidence.version import VERSION
from service.openapi import paths

PATH = "/openapi.json"


@dataclass(frozen=True, slots=True)
class Mounted:
    """The surfaces of a server: records, papers or both; `closed` papers need a token."""

    records: bool
    papers: bool
    closed: bool = False
    public_url: str | None = None


def document(mounted: Mounted) -> dict[str, Any]:
    """The document, as plain JSON values."""
    found, routes = paths.part("server"), paths.part("routes")
    found["info"]["version"] = VERSION
    found["servers"] = [{"url": mounted.public_url or "/"}]
    found["tags"] = [tag for tag in found["tags"] if getattr(mounted, tag["name"], True)]
    shared = found["components"]
    shared["parameters"] = paths.shared_parameters()
    shared["responses"] |= paths.components(paths.headers("Request-Id"))
    if mounted.records:
        shared["schemas"] |= paths.part("records")
        found["paths"] |= paths.of_records(routes["blob"])
    if mounted.papers:
        shared["schemas"] |= paths.part("papers")
        found["paths"] |= paths.of_papers(mounted.closed)
    if not mounted.records and not mounted.closed:
        del shared["securitySchemes"]
    secured = mounted.records or mounted.closed
    found["paths"]["/mcp"] = paths.of_messages(routes["mcp"], "mcp", secured)
    if mounted.papers:
        papers = paths.of_messages(routes["mcp"], "mcp_papers", mounted.closed)
        found["paths"]["/mcp/papers"] = papers
    return found


@cache
def encoded(mounted: Mounted) -> bytes:
    """The document as served; built once per process."""
    return orjson.dumps(document(mounted))
