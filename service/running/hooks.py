"""Request hooks: start a request record, then write it to the log and the metrics.

Every request passes here, so headers are read from the WSGI environment, and nothing is
computed that is not logged.
"""

import ipaddress
import re
from functools import lru_cache
from time import perf_counter
from typing import Any, Final

from flask import Flask, Request, Response, request

from werkzeug.wsgi import ClosingIterator

from evidence import request_log
from evidence.request_log import RequestLog, Trace, continued
from service.running import answers, metrics
from service.access.guard import Guard, peer
from service.http_edge import sent_request_id
from service.running.logs import log_request
from service.settings import Settings

VERBS: Final = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"})
#: Paths that machines poll every few seconds; logged at debug level only.
PROBES: Final = frozenset({"/healthz", "/readyz", metrics.PATH})
NOWHERE: Final = "none"


def prepare(app: Flask, guard: Guard, settings: Settings) -> None:
    """Readies an application to be operated."""
    counting = settings.metrics != "off"

    def after(response: Response) -> Response:
        asked: Request = request._get_current_object()  # type: ignore[attr-defined]
        opened = request_log.current()
        answers.finish(asked, response, guard, opened.allowance)
        if response.is_streamed:
            opened.streams = True
            response.call_on_close(lambda: _log_request(asked, response, opened, counting))
        else:
            _log_request(asked, response, opened, counting)
        return response

    app.before_request(lambda: _check_host(app, guard))
    app.before_request(lambda: answers.options(app, guard))
    app.after_request(after)
    app.wsgi_app = _logged(app.wsgi_app, counting)  # type: ignore[method-assign]


def _check_host(app: Flask, guard: Guard) -> None:
    """Checks `Host` on every route; a view with `checks_host` does so in its own order."""
    view = app.view_functions.get(request.endpoint or "")
    if not getattr(view, "checks_host", False):
        guard.check_host(request.environ.get("HTTP_HOST"), peer(request.environ))


def _logged(application: Any, counting: bool) -> Any:
    """The application, with a request log until its answer is complete, or sent if it streams."""
    asked = metrics.upstream if counting else request_log.uncounted

    def end() -> None:
        request_log.end()
        if counting:
            metrics.ended()

    def wrapped(environ: dict[str, Any], start_response: Any) -> Any:
        began, header = perf_counter(), environ.get
        trace = continued(header("HTTP_TRACEPARENT"))
        opened = RequestLog(
            sent_request_id(environ),
            header("REMOTE_ADDR", ""),
            trace or Trace.begun(),
            traced=trace is not None,
            asked=asked,
            began=began,
        )
        request_log.begin(opened)
        if counting:
            metrics.begun()
        try:
            answer = application(environ, start_response)
        except BaseException:
            end()
            raise
        if opened.streams:
            return ClosingIterator(answer, end)
        end()
        return answer

    return wrapped


def _log_request(asked: Request, response: Response, opened: RequestLog, counting: bool) -> None:
    """Logs and counts a request once the answer is ready, or once a stream was sent."""
    seconds = perf_counter() - opened.began
    rule = asked.url_rule
    route, surface, operation = _place(rule.rule, rule.endpoint) if rule else _UNPLACED
    operation = opened.operation or operation
    status, size = response.status_code, _size(asked, response)
    if counting:
        metrics.count(surface, operation, status, seconds, size, opened.error)
    line = {
        "request_id": opened.request_id,
        "method": asked.method if asked.method in VERBS else request_log.UNKNOWN,
        "route": route,
        "status": status,
        "bytes": size,
        "ms": round(seconds * 1000, 2),
        "surface": surface,
        "operation": operation,
        "trace_id": opened.trace.trace_id,
        "span_id": opened.trace.span_id,
        "client": _address(opened.address),
    }
    if opened.era:
        line["era"] = opened.era
    if opened.error:
        line["error"] = opened.error
    log_request(line, probe=route in PROBES and status < 400)


def _size(asked: Request, response: Response) -> int:
    """Bytes of the body as it is sent."""
    if asked.method == "HEAD" or response.status_code in (204, 304):
        return 0
    return response.calculate_content_length() or response.content_length or 0


_UNPLACED: Final = (NOWHERE, NOWHERE, NOWHERE)


@lru_cache(maxsize=None)
def _place(rule: str, endpoint: str) -> tuple[str, str, str]:
    """(route, surface, operation) of a rule, all of them declared by us.

    The route is the declared address, such as `/v1/blobs/{blob_id}`, not the requested one.
    """
    route = re.sub("<(?:[^<>:]+:)?([^<>]+)>", r"{\1}", rule)
    surface, _, name = endpoint.partition(".")
    return route, surface, re.sub("^post_|_[0-9]+$", "", name)


@lru_cache(maxsize=1_024)
def _address(text: str) -> str:
    """The IP address in a header, or None."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return request_log.UNKNOWN
