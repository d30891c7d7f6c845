"""REST under /v1: one loop over the operations, the port's envelope as the body."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import Blueprint, Flask, Response, g, request

from evidence.errors import Ambiguous, InvalidRequest, NotFound
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.reading import schema
from service.access import Guard
from service.bootstrap import Services
from service.operations import OPERATIONS
from service.operations.base import Operation, RecordOperation, Session
from service.rest import arguments, blobs, web
from service.upstreams.ports import SchemaQuery

PDPP_VERSION = "2026-04-06"
PREFIX = "/v1"
HEADERS = {"PDPP-Version": PDPP_VERSION}


def mount(app: Flask, services: Services, guard: Guard) -> None:
    """Adds the read routes under /v1 to an application that is `web.prepare`d."""
    routes = Blueprint("rest", __name__)
    routes.before_request(lambda: _open(services, guard))
    for operation in OPERATIONS:
        rule = operation.route.path.replace("<", "<segment:")
        routes.add_url_rule(rule, operation.name, _view(operation))
        if operation.route.posted:
            name = f"post_{operation.name}"
            routes.add_url_rule(rule, name, _posted_view(operation), methods=["POST"])
    for rule, name, ask in _OTHERS:
        routes.add_url_rule(rule, name, _plain_view(ask))
    routes.add_url_rule("/v1/blobs/<segment:blob_id>", "blob", _blob)
    app.register_blueprint(routes)


def _open(services: Services, guard: Guard) -> Response | None:
    """Every route needs a client token; one that asks for nothing must say so elsewhere."""
    token = web.begin(guard)
    asked = request.headers.get("PDPP-Version")
    if asked not in (None, PDPP_VERSION):
        raise InvalidRequest(
            f"This service speaks PDPP-Version {PDPP_VERSION}. Send that or no such header.",
            code="unsupported_version",
        )
    g.session = services.open_session(token)
    return None


def _view(operation: RecordOperation) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        given, extra = arguments.read(operation, web.query(), known=arguments.ALWAYS_KNOWN)
        if "record_id" in path:
            given["id"] = str(RecordRef(path["stream"], path["record_id"]))
        elif "stream" in path:
            given["stream"] = path["stream"]
        return _asked(operation, given, extra)

    return view


def _posted_view(operation: RecordOperation) -> Callable[..., Response]:
    def view() -> Response:
        if web.query():
            raise InvalidRequest("A POST has its arguments in the body. Leave the query out.")
        given, extra = arguments.read_posted(
            operation, web.json_body(), known=arguments.ALWAYS_KNOWN
        )
        return _asked(operation, given, extra)

    return view


def _asked(operation: RecordOperation, given: dict[str, Any], extra: dict[str, str]) -> Response:
    """The answer to arguments that were read, whichever way they came."""
    arguments.take_alias(given, extra)
    _narrow(given, extra)
    asked = operation.load(given, operation.route.names)
    more = _extra(operation, extra, asked)
    body = operation.ask(g.session, **asked, **more).body
    if operation.route.link:
        body = operation.route.link(body)
    return _answer(body, alias="deprecated_alias" in extra)


def _extra(operation: Operation, extra: dict[str, str], asked: dict[str, Any]) -> dict[str, Any]:
    """What only REST can ask for, in the words of the port."""
    found: dict[str, Any] = {}
    if operation.name == "fetch" and "fields" in asked:
        found["whole"] = True
    for name, words in (("order", ("asc", "desc")), ("window", ("none", "exact"))):
        if name in extra:
            found[name] = _one_of(name, extra[name], words)
    if "cursor" in extra:
        if asked.get("offset_chars") is not None:
            raise InvalidRequest("Give cursor or offset_chars, not both.", param="cursor")
        found["offset_chars"] = _offset(extra["cursor"])
    if operation.name == "schema" and asked.get("detail") != "full":
        compact = extra.get("view", "").lower() == "compact" or "detail" in asked
        asked["detail"] = "compact" if compact else "document"
    return found


def _one_of(name: str, value: str, words: tuple[str, ...]) -> str:
    if value not in words:
        raise InvalidRequest(f"{name} is one of {', '.join(words)}.", param=name)
    return value


def _offset(cursor: str) -> int:
    """The cursor of a field window is its offset."""
    if not re.fullmatch("[0-9]{1,18}", cursor):
        raise InvalidRequest("cursor here is next_offset_chars.", param="cursor")
    return int(cursor)


def _narrow(given: dict[str, Any], extra: dict[str, str]) -> None:
    """`connector_id` narrows to the connection of that connector."""
    wanted = extra.get("connector_id")
    if wanted is None or "connection_id" in given:
        return
    listed = schema.connectors(g.session.rs.schema(SchemaQuery()))
    found = [
        one for connector in listed if wanted in connector.names for one in connector.connections
    ]
    if not found:
        raise NotFound(
            f"No connector {wanted!r} in this grant.",
            code="connection_not_found",
            param="connector_id",
        )
    if len(found) > 1 and len(listed) > 1:
        raise Ambiguous("Several connections have this connector.", retry_with="connection_id")
    if len(found) == 1:
        given["connection_id"] = found[0]


def _connectors(session: Session, **_: str | None) -> Any:
    return session.rs.connectors()


def _streams(session: Session, *, connection_id: str | None) -> Any:
    return session.rs.streams(connection_id=connection_id)


def _stream(session: Session, *, connection_id: str | None, stream: str) -> Any:
    return session.rs.stream(stream, connection_id=connection_id)


_OTHERS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("/v1/connectors", "connectors", _connectors),
    ("/v1/streams", "streams", _streams),
    ("/v1/streams/<segment:stream>", "stream", _stream),
)
_KNOWN_BY_OTHERS = ("connection_id", *arguments.ALWAYS_KNOWN)


def _plain_view(ask: Callable[..., Any]) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        connection_id, alias = _connection()
        found = ask(g.session, connection_id=connection_id, **path)
        return _answer(found.body, alias=alias)

    return view


def _connection() -> tuple[str | None, bool]:
    """The connection asked for by any of its names, and whether by the deprecated one."""
    extra = dict(request.args)
    for name in extra:
        if name not in _KNOWN_BY_OTHERS:
            raise InvalidRequest(f"Unsupported query parameter: {name}", param=name)
    given = {"connection_id": extra.pop("connection_id")} if "connection_id" in extra else {}
    arguments.take_alias(given, extra)
    _narrow(given, extra)
    return given.get("connection_id"), "deprecated_alias" in extra


def _blob(blob_id: str) -> Response:
    connection_id, alias = _connection()
    warning = {"PDPP-Warning": "deprecated_alias_used: connector_instance_id"} if alias else {}
    blob = g.session.rs.blob(blob_id, connection_id=connection_id)
    return blobs.respond(blob, {**web.headers(), **warning})


def _answer(body: dict[str, Any], *, alias: bool) -> Response:
    """The envelope with its links, and `meta` where the upstream left it out."""
    path, query = request.environ["PATH_INFO"], web.query()
    links = {"self": f"{path}?{query}" if query else path}
    if "has_more" in body:
        links["next"] = _next(path, query, body.get("next_cursor"))
    meta = {"count": {"kind": "none"}, "warnings": [], **body.get("meta", {})}
    if alias:
        meta["warnings"] = [*meta["warnings"], ALIAS_WARNING]
    return web.reply({**body, "links": links, "meta": meta})


ALIAS_WARNING = {
    "code": "deprecated_alias_used",
    "message": "connector_instance_id is deprecated: use connection_id.",
    "param": "connector_instance_id",
}


def _next(path: str, query: str, cursor: str | None) -> str | None:
    """The address of the next page; None where it would be too long, or where this was a POST."""
    if cursor is None or request.method == "POST":
        return None
    kept = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != "cursor"]
    link = f"{path}?{urlencode([*kept, ('cursor', cursor)])}"
    return link if len(link) <= BUDGETS.link_bytes else None
