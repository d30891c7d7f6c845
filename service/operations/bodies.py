"""Builds the REST body of a record operation, for every surface that serves or prints it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from evidence import handles
from evidence.model import REPLACED_BY_CURSOR, known
from evidence.errors import Ambiguous, NotFound
from evidence.limits import BUDGETS
from service.pdpp import encode
from service.operations.base import BaseOperation, RecordOperation, Session, names_in
from service.operations.listings import Listing
from service.pdpp.brackets import pairs_of
from service.ports import SchemaQuery
from service.ports.types import Number

ALIAS_WARNING = {
    "code": "deprecated_alias_used",
    "message": "connector_instance_id is deprecated. Use connection_id.",
    "param": "connector_instance_id",
}

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a body: path and query, both encoded. A `posted` one has no next address."""

    path: str
    query: str = ""
    posted: bool = False

    def __str__(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    def next(self, cursor: str | None) -> str | None:
        """The address of the next page; None if it is too long or this was posted."""
        if cursor is None or self.posted:
            return None
        pairs = parse_qsl(self.query, keep_blank_values=True)
        pairs_without_cursor = [pair for pair in pairs if pair[0] not in REPLACED_BY_CURSOR]
        link = f"{self.path}?{urlencode([*pairs_without_cursor, ('cursor', cursor)])}"
        return link if len(link) <= BUDGETS.link_bytes else None


def body(
    operation: RecordOperation[Any, Any] | Listing[Any],
    session: Session,
    raw: dict[str, Any],
    address: Address,
    extra: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The answer of the operation to unchecked arguments, with its links and `meta`.

    `extra` are the parameters that only REST has.
    """
    raw = narrowed(session, raw, extra)
    raw, warnings = _lenient(operation, raw)
    request = operation.over_rest(operation.load_rest(raw, extra))
    envelope = encode.body_of(operation.ask(session, request))
    if operation.route.link:
        envelope = operation.route.link(envelope)
    return linked(envelope, address, [*warnings, *alias_warnings(extra)])


def alias_warnings(extra: Mapping[str, str]) -> list[Body]:
    """Return the warning of a request that used the deprecated name of `connection_id`."""
    return [ALIAS_WARNING] if "deprecated_alias" in extra else []


def linked(envelope: Body, address: Address, warnings: Sequence[Body] = ()) -> Body:
    """Return the envelope with its links, its `meta` and further warnings."""
    links: dict[str, Any] = {"self": str(address)}
    if "has_more" in envelope or "next_cursor" in envelope:
        links["next"] = address.next(envelope.get("next_cursor"))
    meta = {"count": {"kind": "none"}, "warnings": [], **envelope.get("meta", {})}
    meta["warnings"] = [*meta["warnings"], *warnings]
    return {**envelope, "links": links, "meta": meta}


def _lenient(operation: BaseOperation[Any], raw: Body) -> tuple[Body, list[Body]]:
    """Apply PDPP's leniency to arguments, with a warning for each clamped one."""
    right, warnings = dict(raw), list[Body]()
    for name, words in operation.request.marked("synonyms").items():
        if isinstance(raw.get(name), str):
            right[name] = words.get(raw[name], raw[name])
    for name in operation.request.marked("clamped"):
        field, requested = operation.arguments.fields[name], _number(raw.get(name))
        assert isinstance(field, Number) and field.most is not None, "it has a maximum"
        if requested is not None and requested > field.most:
            right[name] = field.most
            warnings.append(_clamped(operation.rest_name(name), requested, field.most))
    return right, warnings


def _number(value: Any) -> int | float | None:
    """Return the value if it is a whole number; beyond 64 bits, JSON parsers return floats."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return value if whole and not isinstance(value, bool) else None


def _clamped(name: str, requested: int | float, most: int) -> Body:
    return {
        "code": "limit_clamped",
        "message": f"The maximum for {name} is {most:,}, so Rung used {most:,}.",
        "param": name,
        "detail": {"requested_limit": requested, "max_limit": most},
    }


def narrowed(session: Session, raw: dict[str, Any], extra: Mapping[str, str]) -> dict[str, Any]:
    """The arguments, with the connection of the connector that `connector_id` names."""
    name = extra.get("connector_id")
    if name is None or "connection_id" in raw:
        return raw
    connectors = session.rs.schema(SchemaQuery()).value.connectors
    connections = [
        id for connector in connectors if name in connector.names for id in connector.connection_ids
    ]
    if not connections:
        raise NotFound(
            f"This grant has no connector {name!r}. GET /v1/connectors lists its connectors.",
            code="connection_not_found",
            param="connector_id",
        )
    if len(connections) > 1 and len(connectors) > 1:
        raise Ambiguous(
            "Several connections use this connector. Send connection_id instead.",
            retry_with="connection_id",
        )
    return {**raw, "connection_id": connections[0]} if len(connections) == 1 else raw


def address(operation: BaseOperation[Any], args: Mapping[str, Any]) -> Address:
    """The URL of an operation with these arguments, in declaration order."""
    rest = {name: args[name] for name in operation.arguments.fields if name in args}
    if "<record_id>" in operation.route.path and "id" in rest:
        ref = handles.parse(rest.pop("id"), connection_id=rest.pop("connection_id", None))
        rest = {**known(ref._asdict()), **rest}
    return filled(operation, operation.route.path, rest)


def filled(operation: BaseOperation[Any], path: str, args: Mapping[str, Any]) -> Address:
    """The URL of an operation with some arguments in the path and the others in the query."""
    rest = dict(args)
    for name in names_in(path):
        path = path.replace(f"<{name}>", quote(str(rest.pop(name)), safe=""))
    query = pairs_of({operation.rest_name(name): value for name, value in rest.items()})
    return Address(path, urlencode(query))
