"""A worker that stops without losing a request, and answers malformed requests with JSON errors.

After SIGTERM it keeps accepting for a while, until the router in front has seen the 503 of
`/readyz` and connects elsewhere. Meanwhile every answer closes its connection. SIGINT and SIGQUIT
stop it immediately.

This relies on gunicorn's internals: its version is pinned to one major.
"""

import signal
from http import HTTPStatus
from typing import Any, Final

import orjson
from gunicorn import util
from gunicorn.http import errors

from evidence.work import Deadline
from service import settings, statuses
from evidence.request_log import new_id
from service.running.buffering import BufferingWorker, Overloaded, RequestTooSlow
from service.running.connection import BodyTooLarge

#: The statuses of requests that are refused before the application, by their errors.
_STATUSES: Final[tuple[tuple[Any, int], ...]] = (
    (errors.LimitRequestLine, 414),
    (errors.LimitRequestHeaders, 431),
    (BodyTooLarge, 413),
    (RequestTooSlow, 408),
    (Overloaded, 503),
    (errors.ExpectationFailed, 417),
    (errors.UnsupportedTransferCoding, 501),
    (errors.ForbiddenProxyRequest, 403),
    ((errors.ParseException, errors.ConfigurationProblem), 400),
    (BaseException, 500),
)
_ADVICE: Final = {
    400: "This is not a valid HTTP request. Check any proxy between you and this server.",
    403: "Connect to this server directly, without the PROXY protocol.",
    408: "The request arrived too slowly. Send it again.",
    413: "The body is too large, or its chunks are too small. Send a smaller body or larger "
    "chunks.",
    414: "The URL is too long. Send the arguments with POST to /mcp or /v1/search.",
    417: "The Expect header must be 100-continue. Change or remove it.",
    431: "The headers are too large, or there are too many. Send fewer or smaller headers.",
    500: "Internal error. Try again.",
    501: "The transfer coding is not supported. Send the body unencoded or in chunks.",
    503: "The server is overloaded. Try again in a second.",
}
_INVALID: Final = "invalid_request_error"


class DrainingWorker(BufferingWorker):
    """The worker of the service, with a graceful shutdown."""

    _drained: Deadline | None = None

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begins to drain. Repeated signals are ignored."""
        if self._drained is not None:
            return
        self._drained = Deadline.after(settings.load().drain_seconds)
        self.max_keepalived = 0  # from now on every answer closes its connection
        if self.app.callable is not None:
            self.app.callable.extensions["rung"].closing.set()
        self.method_queue.defer(self.notify)  # wakes the event loop, which checks the time

    def notify(self) -> None:
        """Sends the heartbeat; the first one after the drain stops the worker as gunicorn would."""
        super().notify()
        if self._drained is not None and self._drained.expired():
            super().handle_exit(signal.SIGTERM, None)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Refuses a malformed request with the JSON error body; does not log its content."""
        status = next(status for kind, status in _STATUSES if isinstance(exc, kind))
        id = new_id()
        if status == 500:
            self.log.error("request %s failed before it was answered", id, exc_info=exc)
        else:
            self.log.info("request %s was refused before it was read: %s", id, type(exc).__name__)
        error = {
            "type": statuses.TYPES.get(status, "api_error" if status >= 500 else _INVALID),
            "code": statuses.CODES.get(status, "invalid_request"),
            "message": _ADVICE[status],
            "request_id": id,
        }
        body = orjson.dumps({"error": error})
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"Cache-Control: no-store\r\nRequest-Id: {id}\r\n"
        )
        head += "Retry-After: 1\r\n\r\n" if status == 503 else "\r\n"
        try:
            util.write_nonblock(client, head.encode() + body)
        except Exception:
            self.log.debug("request %s: the client closed the connection before the refusal", id)
