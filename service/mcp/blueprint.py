"""MCP over HTTP: one path, POST only, one JSON answer to each message, no session.

The checks run in this order, and the first that fails answers: origin 403, verb 405, host 403,
bearer 401 or 403, content type 415, size 413; then `protocol` reads the body. The verb is checked
before the token, because a client whose GET gets a 401 starts to log in.

A refusal is a JSON-RPC error with a null id. Its `data` is the error object of all surfaces:
`code`, `message`, `hint`, `request_id`.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from flask import Blueprint, Response, g, request
from flask.blueprints import BlueprintSetupState
from werkzeug import datastructures

from evidence.errors import EvidenceError, Internal, InvalidRequest
from evidence import request_log
from evidence.limits import BUDGETS
from service.access import guard as guards
from service.access.guard import Guard, peer
from service.mcp.faults import INTERNAL_ERROR, INVALID_REQUEST, of_error
from service.mcp.protocol import Reply, handle, refused
from service.mcp.server import Server
from service.mcp.answer_cache import AnswerCache
from service.mcp.surface import Surface
from service.mcp.validation import Headers
from service.statuses import status_of

logger = logging.getLogger(__name__)

OpenSession = Callable[[str | None], Any]

#: A WSGI environment.
Environ = dict[str, Any]
#: Headers of a response in addition to the usual ones.
Extra = dict[str, str]

ALLOW: Final = "POST, OPTIONS"
ALWAYS: Final = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
#: Vary already lists Accept-Encoding, for any proxy that compresses JSON.
OF_JSON: Final = (("Content-Type", "application/json"), ("Vary", "Origin, Accept-Encoding"))
ALLOWED_HEADERS: Final = (
    "content-type, authorization, accept, mcp-protocol-version, mcp-method, mcp-name, "
    "mcp-session-id, last-event-id, request-id, x-request-id, traceparent"
)


def blueprint(
    surface: Surface,
    *,
    path: str,
    guard: Guard,
    open_session: OpenSession,
    name: str = "mcp",
    answers: AnswerCache | None = None,
    batch_messages: int = BUDGETS.batch_messages,
) -> Blueprint:
    """Serves `surface` at `path`, with and without a trailing slash, for every verb.

    `path` is relative to the root of the application; a prefix given at registration is not added.
    `open_session` gets the bearer token (None on an open surface) and returns the session for the
    surface. It raises `Unauthenticated` or `Forbidden` for a token it refuses. `name` distinguishes
    several blueprints within one application. `answers` caches answers; a batch may have
    `batch_messages`.
    """
    endpoint = Endpoint(Server(surface, answers, batch_messages), guard, open_session)
    routes = Blueprint(name, __name__)

    def mount(state: BlueprintSetupState) -> None:
        # A rule without methods matches verbs unknown to Flask, so that they too get
        # our 405, after the origin check. The slash is optional and never redirected.
        rule = state.app.url_rule_class(
            path.rstrip("/") or "/", endpoint=f"{name}.endpoint", strict_slashes=False
        )
        state.app.url_map.add(rule)
        state.app.view_functions[rule.endpoint] = endpoint

    routes.record(mount)
    return routes


class Endpoint:
    """The only view: turns a Flask request into bytes and headers, and a reply into a response.

    `checks_host`: it checks `Host` itself, after origin and verb.
    """

    checks_host = True

    def __init__(self, server: Server, guard: Guard, open_session: OpenSession) -> None:
        self._server = server
        self._guard = guard
        self._open_session = open_session

    def __call__(self) -> Response:
        """Answers any request. Sets its id, `g.request_id`, for the logs."""
        environ = request.environ
        id = g.request_id = request_log.id_of(environ)
        try:
            reply, extra = self._answer(environ, id)
        except EvidenceError as error:
            reply, extra = self._refusal(error, environ, id)
        except Exception:
            logger.exception("request %s failed before its body was read", id)
            reply, extra = self._refusal(Internal(), environ, id)
        return self._response(reply, extra, environ.get("HTTP_ORIGIN"), id)

    def _answer(self, environ: Environ, id: str) -> tuple[Reply, Extra]:
        """Makes the checks in order, then runs the protocol. Raises `EvidenceError` to refuse."""
        guard, verb = self._guard, environ["REQUEST_METHOD"]
        guard.check_origin(environ.get("HTTP_ORIGIN"))
        if verb == "OPTIONS":
            return Reply(204), preflight(environ)
        if verb != "POST":  # there is no stream to GET and no session to DELETE
            raise InvalidRequest(
                "This URL accepts POST only; it has no event streams and no sessions.",
                code="method_not_allowed",
                hint="Send a JSON-RPC message with POST. In a browser, open /connect.",
            )
        guard.check_host(environ.get("HTTP_HOST"), peer(environ))
        again = partial(self._open_session, guard.token(environ.get("HTTP_AUTHORIZATION")))
        session = again()
        check_content_type(environ.get("CONTENT_TYPE", ""))
        raw, headers = guards.read_body(environ), Headers(environ)
        return handle(self._server, raw, headers, session, request_id=id, again=again), {}

    def _refusal(self, error: EvidenceError, environ: Environ, id: str) -> tuple[Reply, Extra]:
        """An error as a reply, with the headers that its status requires."""
        status = status_of(error.kind, error.code)
        code = INTERNAL_ERROR if status == 500 else INVALID_REQUEST
        authorization = environ.get("HTTP_AUTHORIZATION")
        extra = self._guard.refusal_headers(error, status, authorization)
        if status == 405:
            extra["Allow"] = ALLOW
        elif error.code == "origin_not_allowed":
            logger.warning(
                "request %s: origin %.200r refused; to allow it, add it to RUNG_ALLOWED_ORIGINS",
                id,
                environ.get("HTTP_ORIGIN"),
            )
        return refused(of_error(error, code, status=status, request_id=id)), extra

    def _response(self, reply: Reply, extra: Extra, origin: str | None, id: str) -> Response:
        """A reply as a response that no cache keeps and only known pages may read."""
        headers = [*ALWAYS, ("Request-Id", id), ("X-Request-Id", id), *extra.items()]
        if origin is not None:
            headers += self._guard.shared(origin).items()
        if reply.body is not None:
            headers += OF_JSON
            return Whole(reply.body, reply.status, headers)
        headers.append(("Vary", "Origin"))
        response = Response(b"", reply.status, headers)
        del response.headers["Content-Type"]  # Flask labels even an empty body as HTML
        return response


class Whole(Response):
    """A response whose body is complete before it is sent."""

    def get_wsgi_headers(self, environ: Environ) -> datastructures.Headers:
        return self.headers


def check_content_type(content_type: str) -> None:
    """Refuses content types that an HTML form can send, which forces a CORS preflight."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise InvalidRequest(
            "The content type must be JSON.",
            code="unsupported_media_type",
            hint="Send the header `Content-Type: application/json`.",
        )


def preflight(environ: Environ) -> Extra:
    """The answer to a CORS preflight. A page of a foreign origin is refused."""
    if "HTTP_ORIGIN" not in environ:
        return {"Allow": ALLOW}
    requested = environ.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS", "").lower().split(",")
    mirrored = [name.strip() for name in requested if name.strip().startswith("mcp-param-")]
    allowed = ", ".join([ALLOWED_HEADERS, *mirrored])
    return {"Allow": ALLOW, **guards.preflight("POST", allowed)}
