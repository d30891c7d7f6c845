"""REST under /v1: one loop over the operations, the PDPP body of the port's answer."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Flask, Response, g, request

from evidence.errors import InvalidRequest
from evidence.handles import RecordRef
from service.access.guard import Guard
from service.bootstrap import Services
from service.operations import OPERATIONS, bodies
from service.operations.base import RecordOperation
from service.operations.bodies import Address
from service.operations.listings import BLOB_PATH, LISTINGS, Listing
from service.rest import arguments, blobs, web

PDPP_VERSION = "2026-04-06"
PREFIX = "/v1"
HEADERS = {"PDPP-Version": PDPP_VERSION}


def mount(app: Flask, services: Services, guard: Guard) -> None:
    """Adds the read routes under /v1 to an application that is `web.prepare`d."""
    routes = Blueprint("rest", __name__)
    routes.before_request(lambda: _open(services, guard))
    for operation in OPERATIONS:
        rule = _rule(operation.route.path)
        routes.add_url_rule(rule, operation.name, _view(operation))
        if operation.route.posted:
            name = f"post_{operation.name}"
            routes.add_url_rule(rule, name, _posted_view(operation), methods=["POST"])
    for listing in LISTINGS:
        routes.add_url_rule(_rule(listing.path), listing.name, _listing_view(listing))
    routes.add_url_rule(_rule(BLOB_PATH), "blob", _blob)
    app.register_blueprint(routes)


def _rule(path: str) -> str:
    return path.replace("<", "<segment:")


def _open(services: Services, guard: Guard) -> Response | None:
    """Every route needs a client token; public routes are declared elsewhere."""
    token = web.begin(guard)
    asked = request.headers.get("PDPP-Version")
    if asked not in (None, PDPP_VERSION):
        raise InvalidRequest(
            f"This service supports PDPP-Version {PDPP_VERSION}. Send that value, or leave the "
            "header out.",
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
            raise InvalidRequest(
                "A POST takes its arguments from the body. Remove the query string."
            )
        given, extra = arguments.read_posted(
            operation, web.json_body(), known=arguments.ALWAYS_KNOWN
        )
        return _asked(operation, given, extra)

    return view


def _asked(operation: RecordOperation, given: dict[str, Any], extra: dict[str, str]) -> Response:
    """The answer to parsed arguments of a GET or a POST."""
    arguments.take_alias(given, extra)
    return web.page(bodies.body(operation, g.session, given, _here(), extra))


def _here() -> Address:
    """The requested address of the answer."""
    return Address(request.environ["PATH_INFO"], web.query(), posted=request.method == "POST")


def _listing_view(listing: Listing) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        connection_id, warnings = _connection()
        answer = listing.ask(g.session, connection_id=connection_id, **path)
        return web.page(bodies.linked(bodies.served(answer), _here(), warnings))

    return view


def _connection() -> tuple[str | None, list[dict[str, Any]]]:
    """Return the connection asked for by any of its names, and a warning for a deprecated one."""
    given, extra = arguments.read_listing(web.query())
    arguments.take_alias(given, extra)
    given = bodies.narrowed(g.session, given, extra)
    return given.get("connection_id"), bodies.alias_warnings(extra)


def _blob(blob_id: str) -> Response:
    connection_id, warnings = _connection()
    warning = {"PDPP-Warning": f"{one['code']}: {one['param']}" for one in warnings}
    blob = g.session.rs.blob(blob_id, connection_id=connection_id)
    return blobs.respond(blob, {**web.headers(), **warning})
