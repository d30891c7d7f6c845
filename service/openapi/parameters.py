"""Arguments of operations as OpenAPI parameters: in REST's names, with REST's defaults."""

from pathlib import Path
from typing import Any

import orjson

from evidence import handles
from evidence.json_text import known
from evidence.limits import CONTRACT
from service.operations import arguments
from service.operations.base import Asked, Route, names_in
from service.operations.json_schema import property_of

Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}
PARTS = Path(__file__).with_name("parts")


def part(name: str) -> dict[str, Any]:
    """A fresh copy of a file in `parts/`."""
    found: dict[str, Any] = orjson.loads((PARTS / f"{name}.json").read_bytes())
    return found


def ref(name: str) -> Shape:
    """A shape among the components."""
    return {"$ref": f"#/components/schemas/{name}"}


#: Parameters of the PDPP contract that every route of records takes, by component name.
SHARED: dict[str, Shape] = {
    "connector_id": {"description": "Only connections of this connector."},
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
    """A route's path as OpenAPI spells it."""
    return path.replace("<", "{").replace(">", "}")


def components() -> dict[str, Shape]:
    """The shared parameters."""
    shapes: dict[str, Shape] = {
        name: {"name": name, "in": "query", "schema": {"type": "string"}, **spec}
        for name, spec in SHARED.items()
    }
    shapes[CONNECTION] = {
        "name": CONNECTION,
        "in": "query",
        "description": arguments.connection_id().metadata["description"],
        "schema": NAME,
    }
    return shapes


def shared() -> list[Shape]:
    """References to the shared parameters."""
    return [_component(name) for name in SHARED]


def _component(name: str) -> Shape:
    return {"$ref": f"#/components/parameters/{name}"}


def _connection(example: dict[str, Any]) -> Shape:
    """`connection_id`: the shared one, or one with an example."""
    if CONNECTION not in example:
        return _component(CONNECTION)
    return {**components()[CONNECTION], "example": example[CONNECTION]}


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


def of_operation(operation: Asked, path: str, fixed: dict[str, Any]) -> list[Shape]:
    """All parameters of a GET, path first; those of the contract are added by the caller."""
    example, fields = spelled_example(operation, path), operation.arguments.fields
    schemas = {name: property_of(name, fields[name]) for name in names_in(path) if name in fields}
    if "<record_id>" in path:
        schemas["record_id"] = property_of("id", fields["id"])
    listed = _in_path(path, schemas, example)
    for name in operation.queried(path, fixed).values():
        if name == CONNECTION:
            listed.append(_connection(example))
        else:
            listed.append(_in_query(operation.route, name, fields[name], example))
    for name, field in operation.route.extra.items():
        listed.append(_named(name, field, field.metadata["description"], {}))
    return listed


def posted(operation: Asked) -> Shape:
    """The JSON body of a POST: the same arguments as typed members."""
    route, fields = operation.route, operation.arguments.fields
    members = {route.spelled(name): _typed(route, name, fields[name]) for name in fields}
    members |= {name: {"type": "string", **spec} for name, spec in SHARED.items()}
    required = [route.spelled(name) for name in fields if fields[name].required]
    return {
        "type": "object",
        "required": required,
        "properties": members,
        "additionalProperties": False,
        "example": spelled_example(operation, route.path),
    }


def spelled_example(operation: Asked, path: str) -> dict[str, Any]:
    """The first example of an operation in the words of REST; an id is taken apart."""
    given = dict(operation.examples[0])
    if "<record_id>" in path:
        given |= known(handles.parse(given.pop("id"))._asdict())
    return {operation.route.spelled(name): value for name, value in given.items()}


def _typed(route: Route, name: str, field: Any) -> Shape:
    """The schema of an argument with its description and REST's default."""
    schema = property_of(name, field)
    description = arguments.over_rest(field, route.defaults.get(name))
    if name in route.defaults:
        schema["default"] = route.defaults[name]
    if name in route.clamped:
        most = schema.pop("maximum")
        description += f" Values over {most:,} are lowered to {most:,}, with a warning."
    if name in route.synonyms:
        schema["enum"] = [*schema["enum"], *route.synonyms[name]]
        meant = route.synonyms[name].items()
        description += "".join(f" {word} works as {other}." for word, other in meant)
    return {**schema, "description": description}


def _in_query(route: Route, name: str, field: Any, example: dict[str, Any]) -> Shape:
    schema = _typed(route, name, field)
    description = schema.pop("description")
    spelled = route.spelled(name)
    parameter = _named(spelled, field, description, schema)
    if field.required or name in route.needs:
        parameter["required"] = True
    if spelled in example:
        parameter["example"] = example[spelled]
    return parameter


def _named(name: str, field: Any, description: str, schema: Shape) -> Shape:
    schema = schema or property_of(name, field)
    parameter: Shape = {"name": name, "in": "query", "description": description, "schema": schema}
    if isinstance(field, (arguments.TypedFilter, arguments.ExpandLimit)):
        # An empty object sends no parameter, so forms start with it.
        parameter |= {"style": "deepObject", "explode": True, "example": {}}
        parameter["schema"] = {k: v for k, v in schema.items() if k != "minProperties"}
    elif isinstance(field, arguments.Names):
        parameter |= {"style": "form", "explode": True}
    return parameter
