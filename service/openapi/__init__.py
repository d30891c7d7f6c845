"""The OpenAPI 3.1 document of what is mounted, made from the operations and their schemas."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from evidence.version import VERSION
from service.openapi import failures, messages, papers, paths, plain, records
from service.openapi.parameters import components

PATH = "/openapi.json"
DESCRIPTION = """Records and research papers as bounded evidence.

Routes return JSON, and every `GET` also answers `HEAD`. An unknown parameter returns 400, an
unknown path 404, and an unsupported method 405, all with the same error body. Whatever an answer
leaves out comes with the URL that reads it, in `links` or in `read`."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """What a server serves: records, papers or both; papers that are `closed` need a token."""

    records: bool
    papers: bool
    closed: bool = False
    public_url: str | None = None


def document(mounted: Mounted) -> dict[str, Any]:
    """The document, as plain JSON values."""
    spec = APISpec(
        title="Rung",
        version=VERSION,
        openapi_version="3.1.0",
        plugins=[MarshmallowPlugin()],
        info={"description": DESCRIPTION, "license": {"name": "Apache-2.0"}},
        servers=[{"url": mounted.public_url or "/"}],
        tags=[tag for tag in paths.TAGS if _shown(tag["name"], mounted)],
    )
    if mounted.records or mounted.closed:
        spec.components.security_scheme("bearer", paths.BEARER)
    for name, header in paths.HEADERS.items():
        spec.components.header(name, header)
    if mounted.records:
        for name, parameter in components().items():
            spec.components.parameter(name, parameter["in"], parameter)
    for name, response in failures.components(paths.headers("Request-Id")).items():
        spec.components.response(name, response)
    for name, shape in _shapes(mounted).items():
        spec.components.schema(name, shape)
    for path, item in _paths(mounted).items():
        spec.path(path=path, operations=item)
    return _pruned(spec.to_dict())


def _pruned(found: dict[str, Any]) -> dict[str, Any]:
    """The document without components that nothing in it points at."""
    while True:
        used = set(_references(found))
        kept = {
            kind: {
                name: part
                for name, part in parts.items()
                if kind == "securitySchemes" or f"#/components/{kind}/{name}" in used
            }
            for kind, parts in found["components"].items()
        }
        if kept == found["components"]:
            return found
        found = {**found, "components": {kind: parts for kind, parts in kept.items() if parts}}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _references(inner)


@cache
def encoded(mounted: Mounted) -> bytes:
    """The document as it is served: built once in a process."""
    return orjson.dumps(document(mounted))


def _shown(tag: str, mounted: Mounted) -> bool:
    return {"records": mounted.records, "papers": mounted.papers}.get(tag, True)


def _shapes(mounted: Mounted) -> dict[str, Any]:
    found = {"Error": failures.SHAPE, **plain.SHAPES}
    found |= records.SHAPES if mounted.records else {}
    found |= papers.SHAPES if mounted.papers else {}
    return found


def _paths(mounted: Mounted) -> dict[str, Any]:
    found = paths.of_records() if mounted.records else {}
    found |= paths.of_papers(mounted.closed) if mounted.papers else {}
    found |= messages.of_messages(mounted.records, mounted.papers, mounted.closed)
    return found | plain.PATHS
