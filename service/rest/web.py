"""What all REST routes share: path decoding, headers and the error body.

Path segments are decoded here, from the raw address, because an id may contain `/`. `hooks` leaves
the address raw.
"""

import logging
from typing import Any
from urllib.parse import unquote

import orjson
from flask import Flask, Response, current_app, g, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, UnsupportedMediaType
from werkzeug.routing import BaseConverter

from evidence import request_log, wire
from evidence.errors import EvidenceError, Internal, InvalidRequest, TooLarge
from evidence.limits import BUDGETS
from evidence.work import TooDeeplyNested, TooManyValues, parse_json
from service.access.guard import Access, Guard, read_body
from service.statuses import CODES, STATUS, TYPES

ALWAYS = {
    "Cache-Control": "private, no-store",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Authorization, Origin",
}

MOUNTS = "rung-rest"
#: The extension that answers browsers at unknown addresses.
MISSING = "rung-missing"
#: Paths for programs: their errors are JSON, whatever a browser prefers.
FOR_PROGRAMS = ("/v1", "/papers/v1", "/mcp")
#: The media types of an address, in the order for clients without a preference.
KINDS = ("application/json", "text/html")

logger = logging.getLogger(__name__)


class Segment(BaseConverter):
    """One path segment, still percent-encoded in the route, decoded for the view."""

    regex = "[^/]+"
    part_isolating = True

    def to_python(self, value: str) -> str:
        return unquote(value)


def prepare(app: Flask, mounts: dict[str, dict[str, str]]) -> None:
    """Readies an application for REST routes: segments and error bodies.

    `mounts` are path prefixes with the headers of every answer below them.
    """
    prefixes = tuple(mounts)
    app.extensions[MOUNTS] = mounts
    app.url_map.converters["segment"] = Segment
    app.url_map.merge_slashes = False  # an empty segment is not a route, and never a redirect
    app.register_error_handler(EvidenceError, _failure)
    app.register_error_handler(HTTPException, lambda error: _http_failure(error, prefixes))
    app.register_error_handler(Exception, _unexpected)


def prefers_page() -> bool:
    """True if the client prefers a page for people to JSON."""
    return request.accept_mimetypes.best_match(KINDS, default=KINDS[0]) == KINDS[1]


def begin(guard: Guard) -> str | None:
    """Checks the caller; returns the bearer token.

    Raises `Forbidden` for a foreign page and `Unauthenticated` if a required token is missing.
    """
    g.guard = guard
    guard.check_origin(request.headers.get("Origin"))
    return guard.token(request.headers.get("Authorization"))


def query() -> str:
    """The query string as it was sent."""
    return request.query_string.decode("utf-8", "replace")


def json_body() -> dict[str, Any]:
    """The body of a POST, which must be a JSON object.

    The media type is required, so that a form on a foreign page cannot send one.
    """
    if request.mimetype != "application/json":
        raise UnsupportedMediaType(
            "The body must be JSON. Send the header Content-Type: application/json."
        )
    try:
        body = parse_json(read_body(request.environ))
    except (TooManyValues, TooDeeplyNested) as error:
        raise TooLarge(f"The body {error}. Send a smaller, less nested body.") from None
    except orjson.JSONDecodeError:
        raise InvalidRequest("The body is not JSON. Send the arguments as a JSON object.") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body is not an object. Send the arguments as a JSON object.")
    return body


def headers() -> dict[str, str]:
    """The headers of an answer. The request id is created once, so body and headers agree."""
    if "request_id" not in g:
        g.request_id = request_log.id_of(request.environ)
    mounts = current_app.extensions[MOUNTS].items()
    own: list[dict[str, str]] = [extra for path, extra in mounts if request.path.startswith(path)]
    return {
        **ALWAYS,
        **(own[0] if own else {}),
        "Request-Id": g.request_id,
        "X-Request-Id": g.request_id,
    }


def reply(body: dict[str, Any], status: int = 200, **extra: str) -> Response:
    """A JSON answer."""
    response = Response(orjson.dumps(body), status, {**headers(), **extra})
    response.headers["Content-Type"] = "application/json; charset=utf-8"
    return response


def refused(status: int, error: dict[str, Any], **extra: str) -> Response:
    """`{"error": {type, code, message, request_id, …}}`."""
    kind, id = TYPES.get(status, "api_error"), headers()["Request-Id"]
    return reply({"error": {"type": kind, **error, "request_id": id}}, status, **extra)


def page(body: dict[str, Any]) -> Response:
    """A JSON answer with the next page also in the header `Link`, if that is short enough."""
    following = body["links"].get("next")
    if not isinstance(following, str) or len(following) > BUDGETS.link_header_bytes:
        return reply(body)
    return reply(body, Link=f'<{following}>; rel="next"')


def _failure(error: EvidenceError) -> Response:
    request_log.current().error = error.code
    status = STATUS[error.kind]
    guard = g.get("guard") or Guard(access=Access.CLIENT_TOKEN)
    authorization = request.headers.get("Authorization")
    extra = guard.refusal_headers(error, status, authorization)
    return refused(status, wire.failure(error)["error"], **extra)


def _http_failure(error: HTTPException, prefixes: tuple[str, ...]) -> Response:
    """The framework's own errors (unknown path, wrong verb) in the same body."""
    status = error.code or 500
    if status == 404 and MISSING in current_app.extensions and _is_visit():
        page: Response = current_app.extensions[MISSING]()
        page.headers["Vary"] = "Accept"
        return page
    code = CODES.get(status, "invalid_request")
    message = {
        404: f"No such route. Read routes are under {' and '.join(prefixes)}; MCP is under /mcp.",
        405: "This route does not support that method. Use a method from the Allow header.",
    }.get(status, error.description or "The request was refused.")
    verbs = error.valid_methods if isinstance(error, MethodNotAllowed) else None
    extra = {"Allow": ", ".join(sorted(verbs))} if verbs else {}
    return refused(status, {"code": code, "message": message}, **extra)


def _is_visit() -> bool:
    """True if a browser navigates to a page."""
    below = f"{request.path}/".startswith(tuple(f"{prefix}/" for prefix in FOR_PROGRAMS))
    return request.method in ("GET", "HEAD") and not below and prefers_page()


def _unexpected(error: Exception) -> Response:
    logger.exception("request %s failed", headers()["Request-Id"])
    return _failure(Internal())
