"""Operations, listings and MCP endpoints as OpenAPI paths, with every status each can answer."""

from collections.abc import Iterable
from typing import Any

from evidence import errors
from evidence.errors import EvidenceError
from service.openapi import parameters
from service.openapi.parameters import TEXT, Shape, part, ref
from service.operations import OPERATIONS
from service.operations.base import Asked, PaperOperation, RecordOperation
from service.operations.listings import BLOB, LISTINGS
from service.operations.papers import PAPER_OPERATIONS
from service.statuses import STATUS, TYPES

RECORDS: tuple[type[EvidenceError], ...] = errors.KINDS
#: The errors of reading a snapshot of papers.
PAPERS: tuple[type[EvidenceError], ...] = tuple(
    kind
    for kind in errors.KINDS
    if kind not in (errors.Unauthenticated, errors.TooLarge, errors.NotText)
)
CLOSED_PAPERS = (*PAPERS, errors.Unauthenticated)


def components(headers: dict[str, Shape]) -> dict[str, Shape]:
    """One response per kind of error, by its name."""
    return {kind.__name__: _response(kind, headers) for kind in errors.KINDS}


def failures(kinds: Iterable[type[EvidenceError]]) -> dict[str, Shape]:
    """The responses of a route that can fail in these ways."""
    return {
        str(STATUS[kind.kind]): {"$ref": f"#/components/responses/{kind.__name__}"}
        for kind in sorted(kinds, key=lambda kind: STATUS[kind.kind])
    }


def unsupported() -> Shape:
    """The response to a body of another content type."""
    content = {"application/json": {"schema": ref("Error")}}
    return {"description": "The content type is not application/json.", "content": content}


def _response(kind: type[EvidenceError], headers: dict[str, Shape]) -> Shape:
    status, meant = STATUS[kind.kind], kind.__doc__ or ""
    own = dict(headers)
    if status == 401:
        own["WWW-Authenticate"] = {
            "description": "The required authentication.",
            "schema": TEXT,
            "required": True,
        }
    if status in (429, 503):
        own["Retry-After"] = {"description": "Seconds to wait before a retry.", "schema": TEXT}
    example = {
        "type": TYPES.get(status, "api_error"),
        "code": kind.default_code,
        "message": meant.replace("`", ""),
        "request_id": "req_0123456789abcdef",
    }
    return {
        "description": f"{meant} Usual code: `{kind.default_code}`.",
        "headers": own,
        "content": {
            "application/json": {"schema": ref("Error"), "example": {"error": example}},
        },
    }


Paths = dict[str, dict[str, Any]]

USUAL = ("Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
KEPT = {"304": {"description": "Not modified since the version in If-None-Match."}}
SECURED: list[dict[str, list[str]]] = [{"bearer": []}]
#: The schemas of the bodies that answer operations and listings.
ANSWERS: dict[str, list[str]] = part("routes")["answers"]


def headers(*names: str) -> dict[str, Shape]:
    """Response headers by reference."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def of_records(blob: Shape) -> Paths:
    """The routes below /v1; `blob` is that of a blob, without its errors."""
    paths: Paths = {}
    for operation in (*OPERATIONS, *LISTINGS):
        path = operation.route.path
        asked = [*parameters.of_operation(operation, path, {}), *parameters.shared()]
        item = {"get": {**_of(operation, asked), **_record_answers(operation.name)}}
        if isinstance(operation, RecordOperation) and operation.route.posted:
            item["post"] = _posted(operation)
        paths[parameters.template(path)] = item
    blob["get"]["responses"] |= failures(RECORDS)
    return paths | {parameters.template(BLOB.route.path): blob}


def of_papers(closed: bool) -> Paths:
    """The routes below /papers/v1."""
    paths: Paths = {}
    kinds = CLOSED_PAPERS if closed else PAPERS
    kept = (*USUAL, "Link") if closed else (*USUAL, "Link", "ETag")
    for operation in PAPER_OPERATIONS:
        variants = {operation.route.path: dict[str, Any](), **operation.route.variants}
        for number, (path, fixed) in enumerate(variants.items()):
            asked = parameters.of_operation(operation, path, fixed)
            described = _of(operation, asked, f"_{path.rpartition('/')[2]}" if number else "")
            item = {**described, **_answers(described["operationId"], kinds, *kept, secured=closed)}
            item["responses"] |= {} if closed else KEPT
            paths[parameters.template(path)] = {"get": item}
    return paths


def _of(operation: Asked, asked: list[Shape], beside: str = "") -> Shape:
    tag = "papers" if isinstance(operation, PaperOperation) else "records"
    info = operation_info(f"{operation.name}{beside}", operation.title, operation.description, tag)
    return {**info, "parameters": asked}


def operation_info(name: str, title: str, description: str, tag: str) -> Shape:
    return {"operationId": name, "summary": title, "description": description, "tags": [tag]}


def _posted(operation: RecordOperation) -> Shape:
    content = {"application/json": {"schema": parameters.posted(operation)}}
    info = operation_info(
        f"{operation.name}_posted", operation.title, operation.description, "records"
    )
    item = {**info, "requestBody": {"required": True, "content": content}}
    item |= _record_answers(operation.name)
    item["responses"]["415"] = {**unsupported(), "headers": headers("Request-Id")}
    return item


def _record_answers(name: str) -> Shape:
    return _answers(name, RECORDS, *USUAL, "PDPP-Version", "Link", secured=True)


def _answers(
    name: str, kinds: tuple[type[EvidenceError], ...], *names: str, secured: bool
) -> Shape:
    """The responses of the operation `name`, with the headers `names` on the good one."""
    bodies = [ref(body) for body in ANSWERS[name]]
    answer = bodies[0] if len(bodies) == 1 else {"oneOf": bodies}
    good = {
        "description": "The answer.",
        "headers": headers(*names),
        "content": {"application/json": {"schema": answer}},
    }
    responses = {"200": good, **failures(kinds)}
    return {"security": SECURED if secured else [], "responses": responses}


def of_messages(route: Shape, of_records: bool, of_papers: bool, closed: bool) -> Paths:
    """The paths `/mcp` and `/mcp/papers`, as they are mounted; `route` is the first."""
    paths = {"/mcp": _mcp(route, "mcp", of_records or closed)}
    return paths | ({"/mcp/papers": _mcp(route, "mcp_papers", closed)} if of_papers else {})


def _mcp(route: Shape, name: str, secured: bool) -> Shape:
    """The path item of an endpoint; `name` is its operation id."""
    item = {**route["post"], "operationId": name}
    if not secured:
        item["security"] = []
        item["responses"] = {k: one for k, one in item["responses"].items() if k != "401"}
    return {"post": item}
