"""The OpenAPI 3.1 document of the mounted routes, built from the operations and their schemas.

Operations, listings and MCP endpoints are paths with every status they can return. `parts/` has
what does not depend on an operation: the schemas of bodies, the headers, the routes of the server
itself, of blobs and of MCP.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from evidence import errors, handles
from evidence.errors import EvidenceError
from evidence.model import known
from evidence.limits import CONTRACT
from evidence.version import VERSION
from service.operations import OPERATIONS
from service.operations.arguments import over_rest
from service.operations.base import BaseOperation, PaperOperation, RecordOperation, names_in
from service.operations.json_schema import property_of
from service.operations.listings import BLOB, BY_MEANING, LISTINGS
from service.operations.papers import PAPER_OPERATIONS
from service.ports import types
from service.statuses import STATUS, TYPES

PATH = "/openapi.json"
Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}
PARTS = Path(__file__).with_name("parts")


def part(name: str) -> dict[str, Any]:
    """A fresh copy of a file in `parts/`."""
    contents: dict[str, Any] = orjson.loads((PARTS / f"{name}.json").read_bytes())
    return contents


def ref(name: str) -> Shape:
    """A reference to a schema among the components."""
    return {"$ref": f"#/components/schemas/{name}"}


#: Parameters of the PDPP contract that every route of records accepts, by component name.
SHARED: dict[str, Shape] = {
    "connector_id": {"description": "Use only connections of this connector."},
    "connector_instance_id": {
        "description": "The former name of connection_id.",
        "deprecated": True,
    },
    "subject_id": {"description": "Accepted for PDPP clients; has no effect."},
}
CONNECTION = "connection_id"
NAME: Shape = {"type": "string", "minLength": 1, "maxLength": CONTRACT.name_chars}
IN_PATH: dict[str, str] = part("routes")["in_path"]


def template(path: str) -> str:
    """A route's path in OpenAPI's notation."""
    return path.replace("<", "{").replace(">", "}")


def shared_parameters() -> dict[str, Shape]:
    """The shared parameters."""
    shapes: dict[str, Shape] = {
        name: {"name": name, "in": "query", "schema": {"type": "string"}, **spec}
        for name, spec in SHARED.items()
    }
    shapes[CONNECTION] = {
        "name": CONNECTION,
        "in": "query",
        "description": types.CONNECTION_ID.metadata["description"],
        "schema": NAME,
    }
    return shapes


def _component(name: str) -> Shape:
    return {"$ref": f"#/components/parameters/{name}"}


def _connection(example: dict[str, Any]) -> Shape:
    """`connection_id`: the shared one, or one with an example."""
    if CONNECTION not in example:
        return _component(CONNECTION)
    return {**shared_parameters()[CONNECTION], "example": example[CONNECTION]}


def _in_path(path: str, schemas: dict[str, Shape], example: dict[str, Any]) -> list[Shape]:
    """The parameters of a path."""
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": IN_PATH.get(name, ""),
            "schema": schemas.get(name, NAME),
            **({"example": example[name]} if name in example else {}),
        }
        for name in names_in(path)
    ]


def of_operation(operation: BaseOperation[Any], path: str, fixed: dict[str, Any]) -> list[Shape]:
    """All parameters of a GET, path first; those of the contract are added by the caller."""
    fields, required = operation.arguments.fields, operation.request.marked("rest_required")
    example = rest_example(operation, path)
    schemas = {name: property_of(name, fields[name]) for name in names_in(path) if name in fields}
    if "<record_id>" in path:
        schemas["record_id"] = property_of("id", fields["id"])
    parameters = _in_path(path, schemas, example)
    for name in operation.queried(path, fixed).values():
        if name == CONNECTION:
            parameters.append(_connection(example))
            continue
        schema, rest_name = _argument_schema(operation, name), operation.rest_name(name)
        parameter = _query_parameter(rest_name, fields[name], schema.pop("description"), schema)
        if fields[name].required or name in required:
            parameter["required"] = True
        if rest_name in example:
            parameter["example"] = example[rest_name]
        parameters.append(parameter)
    for name, field in operation.extra.items():
        parameters.append(_query_parameter(name, field, field.metadata["description"], {}))
    return parameters


def posted(operation: BaseOperation[Any]) -> Shape:
    """The JSON body of a POST: the same arguments as typed members."""
    fields = operation.arguments.fields
    members = {operation.rest_name(name): _argument_schema(operation, name) for name in fields}
    members |= {name: {"type": "string", **spec} for name, spec in SHARED.items()}
    required = [operation.rest_name(name) for name in fields if fields[name].required]
    return {
        "type": "object",
        "required": required,
        "properties": members,
        "additionalProperties": False,
        "example": rest_example(operation, operation.route.path),
    }


def rest_example(operation: BaseOperation[Any], path: str) -> dict[str, Any]:
    """The first example of an operation with REST names; an id is split into its parts."""
    example = dict(operation.examples[0])
    if "<record_id>" in path:
        example |= known(handles.parse(example.pop("id"))._asdict())
    return {operation.rest_name(name): value for name, value in example.items()}


def _argument_schema(operation: BaseOperation[Any], name: str) -> Shape:
    """The schema of an argument with its description and REST's default."""
    field, marked = operation.arguments.fields[name], operation.request.marked
    schema = property_of(name, field)
    description = over_rest(field, operation.rest_defaults.get(name))
    if name in operation.rest_defaults:
        schema["default"] = operation.rest_defaults[name]
    if name in marked("clamped"):
        most = schema.pop("maximum")
        description += f" Values over {most:,} are lowered to {most:,}, with a warning."
    if synonyms := marked("synonyms").get(name):
        schema["enum"] = [*schema["enum"], *synonyms]
        description += "".join(f" {word} works as {meant}." for word, meant in synonyms.items())
    return {**schema, "description": description}


def _query_parameter(name: str, field: Any, description: str, schema: Shape) -> Shape:
    schema = schema or property_of(name, field)
    parameter: Shape = {"name": name, "in": "query", "description": description, "schema": schema}
    if isinstance(field, (types.TypedFilter, types.ExpandLimit)):
        # An empty object sends no parameter, so forms start with it.
        parameter |= {"style": "deepObject", "explode": True, "example": {}}
        parameter["schema"] = {k: v for k, v in schema.items() if k != "minProperties"}
    elif isinstance(field, types.Names):
        parameter |= {"style": "form", "explode": True}
    return parameter


RECORDS: tuple[type[EvidenceError], ...] = errors.KINDS
#: The errors of reading a snapshot of papers.
_OF_RECORDS = (errors.Unauthenticated, errors.TooLarge, errors.NotText)
PAPERS = tuple(kind for kind in errors.KINDS if kind not in _OF_RECORDS)


def components(headers: dict[str, Shape]) -> dict[str, Shape]:
    """One response per kind of error, by name."""
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
        required = {"description": "The required authentication.", "schema": TEXT, "required": True}
        own["WWW-Authenticate"] = required
    if status in (429, 503):
        own["Retry-After"] = {"description": "Seconds to wait before a retry.", "schema": TEXT}
    example = {
        "type": TYPES.get(status, "api_error"),
        "code": kind.default_code,
        "message": meant.replace("`", ""),
        "request_id": "req_0123456789abcdef",
    }
    content = {"schema": ref("Error"), "example": {"error": example}}
    return {
        "description": f"{meant} Usual code: `{kind.default_code}`.",
        "headers": own,
        "content": {"application/json": content},
    }


Paths = dict[str, dict[str, Any]]

USUAL = ("Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
NOT_MODIFIED = {"304": {"description": "Not modified since the version in If-None-Match."}}
SECURED: list[dict[str, list[str]]] = [{"bearer": []}]
#: The schemas of the bodies that answer operations and listings.
ANSWERS: dict[str, list[str]] = part("routes")["answers"]


def headers(*names: str) -> dict[str, Shape]:
    """Response headers by reference."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def of_records(blob: Shape, *, semantic: bool) -> Paths:
    """The routes below /v1; `blob` is that of a blob, without its errors."""
    by_meaning = BY_MEANING if semantic else ()
    paths: Paths = {}
    for operation in (*OPERATIONS, *LISTINGS, *by_meaning):
        path = operation.route.path
        parameters = [*of_operation(operation, path, {}), *map(_component, SHARED)]
        item = {"get": {**_of(operation, parameters), **_record_answers(operation.name)}}
        if isinstance(operation, RecordOperation) and operation.route.posted:
            item["post"] = _posted(operation)
        paths[template(path)] = item
    blob["get"]["responses"] |= failures(RECORDS)
    return paths | {template(BLOB.route.path): blob}


def of_papers(closed: bool) -> Paths:
    """The routes below /papers/v1."""
    paths: Paths = {}
    kinds = (*PAPERS, errors.Unauthenticated) if closed else PAPERS
    header_names = (*USUAL, "Link") if closed else (*USUAL, "Link", "ETag")
    for operation in PAPER_OPERATIONS:
        variants = {operation.route.path: dict[str, Any](), **operation.route.variants}
        for number, (path, fixed) in enumerate(variants.items()):
            parameters = of_operation(operation, path, fixed)
            described = _of(operation, parameters, f"_{path.rpartition('/')[2]}" if number else "")
            item = {
                **described,
                **_answers(described["operationId"], kinds, *header_names, closed=closed),
            }
            item["responses"] |= {} if closed else NOT_MODIFIED
            paths[template(path)] = {"get": item}
    return paths


def _of(operation: BaseOperation[Any], parameters: list[Shape], suffix: str = "") -> Shape:
    tag = "papers" if isinstance(operation, PaperOperation) else "records"
    info = operation_info(f"{operation.name}{suffix}", operation.title, operation.description, tag)
    return {**info, "parameters": parameters}


def operation_info(name: str, title: str, description: str, tag: str) -> Shape:
    return {"operationId": name, "summary": title, "description": description, "tags": [tag]}


def _posted(operation: RecordOperation[Any, Any]) -> Shape:
    content = {"application/json": {"schema": posted(operation)}}
    name = f"{operation.name}_posted"
    info = operation_info(name, operation.title, operation.description, "records")
    item = {**info, "requestBody": {"required": True, "content": content}}
    item |= _record_answers(operation.name)
    item["responses"]["415"] = {**unsupported(), "headers": headers("Request-Id")}
    return item


def _record_answers(name: str) -> Shape:
    return _answers(name, RECORDS, *USUAL, "PDPP-Version", "Link", closed=True)


def _answers(name: str, kinds: tuple[type[EvidenceError], ...], *names: str, closed: bool) -> Shape:
    """The responses of the operation `name`, with the headers `names` on the successful one."""
    bodies = [ref(body) for body in ANSWERS[name]]
    answer = bodies[0] if len(bodies) == 1 else {"oneOf": bodies}
    good = {
        "description": "The answer.",
        "headers": headers(*names),
        "content": {"application/json": {"schema": answer}},
    }
    responses = {"200": good, **failures(kinds)}
    return {"security": SECURED if closed else [], "responses": responses}


def of_messages(route: Shape, name: str, secured: bool) -> Shape:
    """The path item of an MCP endpoint like `route`; `name` is its operation id."""
    item = {**route["post"], "operationId": name}
    if not secured:
        item["security"] = []
        item["responses"] = {
            status: response for status, response in item["responses"].items() if status != "401"
        }
    return {"post": item}


@dataclass(frozen=True, slots=True)
class Mounted:
    """The surfaces of a server: records, papers or both; `closed` papers need a token.

    `semantic` records are also searched by meaning.
    """

    records: bool
    papers: bool
    closed: bool = False
    public_url: str | None = None
    semantic: bool = False


def document(mounted: Mounted) -> dict[str, Any]:
    """The document, as plain JSON values."""
    spec, routes = part("server"), part("routes")
    spec["info"]["version"] = VERSION
    spec["servers"] = [{"url": mounted.public_url or "/"}]
    spec["tags"] = [tag for tag in spec["tags"] if getattr(mounted, tag["name"], True)]
    shared = spec["components"]
    shared["parameters"] = shared_parameters()
    shared["responses"] |= components(headers("Request-Id"))
    if mounted.records:
        shared["schemas"] |= part("records")
        spec["paths"] |= of_records(routes["blob"], semantic=mounted.semantic)
    if mounted.papers:
        shared["schemas"] |= part("papers")
        spec["paths"] |= of_papers(mounted.closed)
    if not mounted.records and not mounted.closed:
        del shared["securitySchemes"]
    secured = mounted.records or mounted.closed
    spec["paths"]["/mcp"] = of_messages(routes["mcp"], "mcp", secured)
    if mounted.papers:
        papers = of_messages(routes["mcp"], "mcp_papers", mounted.closed)
        spec["paths"]["/mcp/papers"] = papers
    return spec


@cache
def encoded(mounted: Mounted) -> bytes:
    """The document as served; built once per process."""
    return orjson.dumps(document(mounted))
