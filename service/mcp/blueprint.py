"""MCP over HTTP: one path, POST only, one JSON answer to each message, no session.

The checks run in this order, and the first that fails answers: origin 403, verb 405, host 403,
bearer 401 or 403, content type 415, size 413; then `protocol` reads the body. The verb comes
before the token, because a client that is refused a GET with 401 starts to log in.

A refusal is a JSON-RPC error with a null id, whose `data` is the error object all surfaces
share: `code`, `message`, `hint`, `request_id`.
"""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from flask import Blueprint, Response, g, request
from flask.blueprints import BlueprintSetupState
from werkzeug.datastructures import Headers
from werkzeug.wsgi import get_content_length, get_input_stream

from evidence import account
from evidence.errors import EvidenceError, Internal, InvalidRequest, TooLarge
from evidence.limits import BUDGETS
from service.access.guard import Guard, peer, request_id
from service.mcp.dispatch import Server
from service.mcp.faults import INTERNAL_ERROR, INVALID_REQUEST, Fault, told
from service.mcp.protocol import Reply, handle, refused
from service.mcp.repeats import Repeats
from service.mcp.surface import Surface
from service.statuses import STATUS

logger = logging.getLogger(__name__)

OpenSession = Callable[[str | None], Any]

#: A WSGI environment, and headers a response carries beside the usual ones.
Environ = dict[str, Any]
Extra = dict[str, str]

ALLOW: Final = "POST, OPTIONS"
PIECE_BYTES: Final = 65_536
PREFLIGHT_SECONDS: Final = "7200"
ALWAYS: Final = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
#: Who compresses JSON finds said what it would have to say.
OF_JSON: Final = (("Content-Type", "application/json"), ("Vary", "Origin, Accept-Encoding"))
ALLOWED_HEADERS: Final = (
    "content-type, authorization, accept, mcp-protocol-version, mcp-method, mcp-name, "
    "mcp-session-id, last-event-id, request-id, x-request-id, traceparent"
)

#: What HTTP says to an error met before the body is read; anything else is a fault of ours.
STATUS_OF_CODE: Final = {"method_not_allowed": 405, "unsupported_media_type": 415}


def blueprint(
    surface: Surface,
    *,
    path: str,
    guard: Guard,
    open_session: OpenSession,
    name: str = "mcp",
    repeats: Repeats | None = None,
) -> Blueprint:
    """`surface` served at `path`, with and without a trailing slash, to every verb there is.

    `path` counts from the root of the application; a prefix given at registration is not added.
    `open_session` gets the bearer token (None on an open surface) and returns what the surface
    takes as its session. It raises `Unauthenticated` or `Forbidden` for a token it refuses.
    `name` tells several of these apart within one application. `repeats` keeps answers.
    """
    endpoint = Endpoint(Server(surface, repeats), guard, open_session)
    found = Blueprint(name, __name__)

    def mount(state: BlueprintSetupState) -> None:
        # A rule without methods matches verbs Flask has no name for, so that they too are
        # told 405 by us, behind the origin check. The slash is optional and never redirected.
        rule = state.app.url_rule_class(
            path.rstrip("/") or "/", endpoint=f"{name}.endpoint", strict_slashes=False
        )
        state.app.url_map.add(rule)
        state.app.view_functions[rule.endpoint] = endpoint

    found.record(mount)
    return found


class Endpoint:
    """The one view: turns a Flask request into bytes and headers, and a reply into a response.

    `checks_host`: it checks `Host` after origin and verb, so nothing else has to.
    """

    checks_host = True

    def __init__(self, server: Server, guard: Guard, open_session: OpenSession) -> None:
        self._server = server
        self._guard = guard
        self._open_session = open_session

    def __call__(self) -> Response:
        """The answer to whatever was sent here. Its id is `g.request_id` for all that logs."""
        environ = request.environ
        headers = SentHeaders(environ)
        told = headers.get("Request-Id") or headers.get("X-Request-Id")
        id = account.current().request_id or request_id(told)
        g.request_id = id
        try:
            reply, extra = self._answer(environ, headers, id)
        except EvidenceError as error:
            reply, extra = self._refusal(error, headers, id)
        except Exception:
            logger.exception("request %s failed before its body was read", id)
            reply, extra = self._refusal(Internal(), headers, id)
        return self._response(reply, extra, headers.get("Origin"), id)

    def _answer(self, environ: Environ, headers: "SentHeaders", id: str) -> tuple[Reply, Extra]:
        """The checks in their order, then the protocol. Raises `EvidenceError` to refuse."""
        guard, verb = self._guard, environ["REQUEST_METHOD"]
        guard.check_origin(headers.get("Origin"))
        if verb == "OPTIONS":
            return Reply(204), preflight(headers)
        check_verb(verb)
        guard.check_host(headers.get("Host"), peer(environ))
        session = self._open_session(guard.token(headers.get("Authorization")))
        check_content_type(environ.get("CONTENT_TYPE", ""))
        raw = read_body(environ)
        return handle(self._server, raw, headers, session, request_id=id), {}

    def _refusal(
        self, error: EvidenceError, headers: "SentHeaders", id: str
    ) -> tuple[Reply, Extra]:
        """An error as a reply, with the headers that HTTP wants beside its status."""
        status = STATUS_OF_CODE.get(error.code) or STATUS[error.kind]
        code = INTERNAL_ERROR if status == 500 else INVALID_REQUEST
        fault = Fault(code, told(error), status=status, data={**error.body(), "request_id": id})
        extra = {}
        if "retry_after" in error.details:
            extra["Retry-After"] = str(error.details["retry_after"])
        if status == 401:
            extra["WWW-Authenticate"] = self._guard.challenge(headers.get("Authorization"))
        elif status == 405:
            extra["Allow"] = ALLOW
        elif error.code == "origin_not_allowed":
            logger.warning(
                "request %s: origin %.200r refused; if it is yours, add it to RUNG_ALLOWED_ORIGINS",
                id,
                headers.get("Origin"),
            )
        return refused(fault), extra

    def _response(self, reply: Reply, extra: Extra, origin: str | None, id: str) -> Response:
        """A reply as a response that no cache keeps and only known pages may read."""
        headers = [*ALWAYS, ("Request-Id", id), ("X-Request-Id", id), *extra.items()]
        headers += self._guard.shared(origin).items()
        if reply.body is not None:
            headers += OF_JSON
            return Whole(reply.body, reply.status, headers)
        headers.append(("Vary", "Origin"))
        response = Response(b"", reply.status, headers)
        del response.headers["Content-Type"]  # Flask calls even nothing HTML
        return response


class Whole(Response):
    """A response that says all it has to say: nothing is worked out while it is sent."""

    def get_wsgi_headers(self, environ: Environ) -> Headers:
        return self.headers


class SentHeaders:
    """The request's headers, looked up straight in the WSGI environment: a dozen per request."""

    __slots__ = ("_environ",)

    def __init__(self, environ: Environ) -> None:
        self._environ = environ

    def get(self, name: str, /) -> str | None:
        """The value of a header, by its name in any case; None without it."""
        found: str | None = self._environ.get(_key(name))
        return found


@lru_cache(maxsize=256)
def _key(name: str) -> str:
    return "HTTP_" + name.upper().replace("-", "_")


def check_verb(verb: str) -> None:
    """Refuses every verb but POST. There is no stream to GET and no session to DELETE."""
    if verb != "POST":
        raise InvalidRequest(
            "This address answers POST only; it has no event stream and no session.",
            code="method_not_allowed",
            hint="Send a JSON-RPC message by POST. In a browser, open /connect.",
        )


def check_content_type(found: str) -> None:
    """Refuses what a browser form could send, which also makes foreign pages ask first."""
    if found.partition(";")[0].strip().lower() != "application/json":
        raise InvalidRequest(
            "The body must be JSON and say so.",
            code="unsupported_media_type",
            hint="Send the header `Content-Type: application/json`.",
        )


def read_body(environ: Environ) -> bytes:
    """The whole body, chunked or not, or `TooLarge`. Never reads past the limit by more than one.

    Read by hand: a framework limit cuts a chunked body short without a word.
    """
    parts, missing = [], BUDGETS.body_bytes + 1
    if (get_content_length(environ) or 0) >= missing:
        raise too_large()
    stream = get_input_stream(environ)
    try:
        while missing and (part := stream.read(min(missing, PIECE_BYTES))):
            parts.append(part)
            missing -= len(part)
    except Exception:  # a malformed chunk: each server has its own words for it
        raise InvalidRequest("The body broke off before its end.", hint="Send it again.") from None
    if not missing:
        raise too_large()
    return b"".join(parts)


def too_large() -> TooLarge:
    """The refusal of a body over the limit, which it names."""
    limit = BUDGETS.body_bytes
    message = f"The body is larger than {limit} bytes."
    return TooLarge(message, hint="Send a smaller message.", limit=limit)


def preflight(headers: SentHeaders) -> Extra:
    """What a page may send here, for the browser that asks first. A foreign page is past none."""
    if headers.get("Origin") is None:
        return {"Allow": ALLOW}
    asked = (headers.get("Access-Control-Request-Headers") or "").lower().split(",")
    mirrored = [name.strip() for name in asked if name.strip().startswith("mcp-param-")]
    return {
        "Allow": ALLOW,
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": ", ".join([ALLOWED_HEADERS, *mirrored]),
        "Access-Control-Max-Age": PREFLIGHT_SECONDS,
    }
