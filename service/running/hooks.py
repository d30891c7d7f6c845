"""Handles every request: its log line and metrics, and the headers of all responses.

Request headers are read from the WSGI environment, and nothing is computed unless it is logged.
Adds CORS and cache headers, answers 304 if the client has the body, and compresses large bodies.
"""

import gzip
import hashlib
import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from http import HTTPStatus
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, Final

from flask import Flask, Request, Response, request
from werkzeug.http import is_resource_modified
from werkzeug.wsgi import ClosingIterator

from evidence import request_log, work
from evidence.errors import RateLimited
from evidence.limits import BUDGETS
from evidence.request_log import Allowance, RequestLog, Trace, continued, sent_id
from evidence.work import Spending
from service.access.activity import Activity
from service.access.guard import Guard, peer, preflight
from service.running import metrics, noted
from service.running.connection import ARRIVAL
from service.running.turns import TURN, Turn
from service.settings import Settings

if TYPE_CHECKING:
    from service.access.rates import Rates

VERBS: Final = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"})
#: Paths that machines poll every few seconds; logged at debug level only.
PROBES: Final = frozenset({"/healthz", "/readyz", metrics.PATH})
#: Blueprints that open a session for each request, which checks the budget of work.
OPENING: Final = frozenset({"rest", "papers", "reading", "mcp", "mcp_papers"})
NOWHERE: Final = "none"


class Application(Flask):
    """Flask for views that are plain functions, without the per-call check of their type."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return func


def prepare(
    app: Flask,
    guard: Guard,
    settings: Settings,
    encoded: Iterable[str] = (),
    activity: Activity | None = None,
    rates: "Rates | None" = None,
    owner: Callable[[], str | None] = lambda: None,
) -> None:
    """Adds the hooks to an application.

    `activity` counts the uses of grants, `rates` the work. `owner` returns the session of the
    signed-in owner, who is never refused for the work of others at the same address. Paths under
    the prefixes `encoded` stay percent-encoded, so that `%2F` stays inside its segment.
    """
    starts = tuple(f"{prefix}/" for prefix in encoded)
    counting = settings.metrics != "off"

    def log(http_request: Request, response: Response, opened: RequestLog) -> None:
        operation = _log_request(http_request, response, opened, counting)
        if opened.grant and activity is not None:
            activity.count(opened.grant, operation, opened.used)

    def after(response: Response) -> Response:
        http_request: Request = request._get_current_object()  # type: ignore[attr-defined]
        opened = request_log.current()
        finish(http_request, response, guard, opened.allowance)
        if response.is_streamed:
            opened.streamed = True
            response.call_on_close(lambda: log(http_request, response, opened))
        else:
            log(http_request, response, opened)
        return response

    def check_host() -> None:
        """Checks `Host` on every route; views with `checks_host` do so themselves."""
        view = app.view_functions.get(request.endpoint or "")
        if not getattr(view, "checks_host", False):
            guard.check_host(request.environ.get("HTTP_HOST"), peer(request.environ))

    def check_work() -> None:
        """Checks the deadline and the budget on routes that do not open a session themselves."""
        if request.blueprint in OPENING or request.path in PROBES:
            return
        work.check("the request waited for a thread")
        if rates is None:
            return
        try:
            rates.check_work(request_log.current())
        except RateLimited:
            if owner() is None:
                raise

    app.before_request(check_host)
    app.before_request(check_work)
    app.before_request(lambda: options(app, guard))
    app.after_request(after)
    app.wsgi_app = _logged(  # type: ignore[method-assign]
        app.wsgi_app, counting, settings.upstream_url is not None, starts, rates
    )


def _logged(
    application: Any,
    counting: bool,
    upstream: bool,
    encoded: tuple[str, ...],
    rates: "Rates | None",
) -> Any:
    """Wraps the application in a request log, until the answer is complete or a stream is sent.

    Also gives the request its deadline, counted from its arrival, until its answer begins, and
    charges its work.
    """
    on_outcome = noted.upstream if counting else request_log.uncounted
    seconds = BUDGETS.upstream_seconds if upstream else BUDGETS.store_seconds

    def end() -> None:
        request_log.end()
        if counting:
            noted.IN_FLIGHT.dec()

    def wrapped(environ: dict[str, Any], start_response: Any) -> Any:
        began, header = perf_counter(), environ.get
        raw = str(header("RAW_URI") or header("REQUEST_URI") or "").partition("?")[0]
        if raw.startswith(encoded):
            environ["PATH_INFO"] = raw
        trace = continued(header("HTTP_TRACEPARENT"))
        opened = RequestLog(
            sent_id(environ),
            header("REMOTE_ADDR", ""),
            trace or Trace.begun(),
            traced=trace is not None,
            on_upstream_outcome=on_outcome,
            began=began,
        )
        request_log.begin(opened)
        spending = work.begin(seconds, header(ARRIVAL))
        turn: Turn | None = header(TURN)
        if turn is not None:
            turn.entry = opened
            work.allow_pauses(turn.pause)
        if counting:
            noted.IN_FLIGHT.inc()
        try:
            answer = application(environ, start_response)
        except BaseException:
            end()
            raise
        finally:
            work.end()
            if raw not in PROBES:
                spending.end(partial(charge, rates, opened, turn))
        if opened.streamed:
            return ClosingIterator(_metered(answer, spending), [answer.close, end])
        end()
        return answer

    return wrapped


def charge(rates: "Rates | None", opened: RequestLog, turn: Turn | None, seconds: float) -> None:
    """Counts CPU seconds of a request for its budget and its turn."""
    if rates is not None:
        rates.charge(opened, seconds)
    if turn is not None:
        turn.charge(seconds - turn.charged)
        turn.charged = 0.0


def _metered(pieces: Iterable[bytes], spending: Spending) -> Iterator[bytes]:
    """The pieces of a stream; counts the CPU time of making them."""
    rest = iter(pieces)
    while True:
        began = thread_time()
        chunk = next(rest, None)
        spending.add(thread_time() - began)
        if chunk is None:
            return
        yield chunk


def _log_request(http_request: Request, response: Response, log: RequestLog, counting: bool) -> str:
    """Logs and counts a request once the answer is ready, or once a stream was sent.

    Returns its operation.
    """
    seconds = perf_counter() - log.began
    rule = http_request.url_rule
    route, surface, operation = _classify(rule.rule, rule.endpoint) if rule else _UNPLACED
    operation = log.operation or operation
    status, size = response.status_code, _size(http_request, response)
    log.refused = status == HTTPStatus.UNAUTHORIZED
    if counting:
        noted.count(surface, operation, status, seconds, size, log.error)
    line = {
        "request_id": log.request_id,
        "method": http_request.method if http_request.method in VERBS else request_log.UNKNOWN,
        "route": route,
        "status": status,
        "bytes": size,
        "ms": round(seconds * 1000, 2),
        "surface": surface,
        "operation": operation,
        "trace_id": log.trace.trace_id,
        "span_id": log.trace.span_id,
        "client": _address(log.address),
    }
    details = {"grant": log.grant, "era": log.era, "error": log.error}
    line |= {name: value for name, value in details.items() if value}
    noted.log_request(line, probe=route in PROBES and status < 400)
    return operation


def _size(http_request: Request, response: Response) -> int:
    """Bytes of the body as it is sent."""
    if http_request.method == "HEAD" or response.status_code in (204, 304):
        return 0
    return response.calculate_content_length() or response.content_length or 0


_UNPLACED: Final = (NOWHERE, NOWHERE, NOWHERE)


@lru_cache(maxsize=None)
def _classify(rule: str, endpoint: str) -> tuple[str, str, str]:
    """(route, surface, operation) of a rule; all three come from our own declarations.

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


#: What any page may request: public documents, and endpoints that ignore cookies.
PUBLIC_PREFIXES = tuple("/.well-known/ /openapi.json /llms.txt /token /register /revoke".split())
#: (name in lower case, name as sent, value)
SECURITY: Final = (
    ("x-content-type-options", "X-Content-Type-Options", "nosniff"),
    ("referrer-policy", "Referrer-Policy", "no-referrer"),
)
ALLOWED_HEADERS: Final = (
    "authorization, content-type, accept, pdpp-version, mcp-protocol-version, range, "
    "if-none-match, request-id, x-request-id, traceparent"
)
#: The fastest level: on a few KB of JSON it takes a third of the time of the best, for 3 % more
#: bytes.
LEVEL: Final = 1
COMPRESSED: Final = frozenset("""
    application/json application/javascript application/problem+json image/svg+xml
    text/css text/html text/javascript text/markdown text/plain
    """.split())
TAG_BYTES: Final = 12


def options(app: Flask, guard: Guard) -> Response | None:
    """The answer to OPTIONS on a route that does not handle it itself; None for other requests.

    Answers CORS preflights; a foreign page is refused.
    """
    if request.method != "OPTIONS" or request.url_rule is None or request.url_rule.methods is None:
        return None
    adapter = app.create_url_adapter(request)
    assert adapter is not None, "there is a request"
    verbs = ", ".join(sorted(adapter.allowed_methods()))
    response = Response(b"", 204, {"Allow": verbs, "Cache-Control": "no-store"})
    del response.headers["Content-Type"]
    origin = request.headers.get("Origin")
    if origin is not None:
        if not _public(request.path):
            guard.check_origin(origin)
        response.headers.update(preflight(verbs, ALLOWED_HEADERS))
    return response


def finish(
    http_request: Request, response: Response, guard: Guard, allowance: Allowance | None
) -> None:
    """Adds the headers, and makes the answer a 304 or compresses it if possible."""
    headers, environ, status = response.headers, http_request.environ, response.status_code
    sent = {name.lower(): value for name, value in headers}  # read once, because lookups are slow
    for key, name, value in SECURITY:
        if key not in sent:
            headers.add(name, value)
    if allowance is not None:
        headers["RateLimit-Limit"] = str(allowance.limit)
        headers["RateLimit-Remaining"] = str(allowance.remaining)
        headers["RateLimit-Reset"] = str(allowance.reset)
    if status >= 400:
        if _is_cacheable(sent):
            headers["Cache-Control"] = "no-store"
    elif status in (200, 206) and http_request.method in ("GET", "HEAD"):
        _tag(environ, response, sent)
    vary = [sent["vary"]] if "vary" in sent else []
    if _compressible(sent.get("content-type", "")) and not response.is_streamed:
        vary += _missing("Accept-Encoding", vary)
        if "gzip" in environ.get("HTTP_ACCEPT_ENCODING", "") and "content-encoding" not in sent:
            bodiless = response.status_code in (204, 206, 304)
            body = b"" if bodiless else response.get_data()
            if len(body) >= BUDGETS.compress_bytes and http_request.accept_encodings["gzip"]:
                response.set_data(gzip.compress(body, LEVEL, mtime=0))
                headers["Content-Encoding"] = "gzip"
    if _public(environ["PATH_INFO"]):
        headers["Access-Control-Allow-Origin"] = "*"
    elif "HTTP_ORIGIN" in environ:
        vary += _missing("Origin", vary)
        if "access-control-allow-origin" not in sent:
            headers.update(guard.shared(environ["HTTP_ORIGIN"]))
    if vary and vary != [sent.get("vary")]:
        headers["Vary"] = ", ".join(vary)


@lru_cache(maxsize=64)
def _compressible(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in COMPRESSED


def _missing(name: str, vary: list[str]) -> list[str]:
    return [] if vary and name in vary[0] else [name]


def _public(path: str) -> bool:
    return path.startswith(PUBLIC_PREFIXES)


def _is_cacheable(sent: dict[str, str]) -> bool:
    """True if caches may keep the answer; false if a token was used."""
    policy = sent.get("cache-control", "")
    return "public" in policy or policy == "no-cache"


def _tag(environ: dict[str, Any], response: Response, sent: dict[str, str]) -> None:
    """Adds an ETag to cacheable answers, and makes them a 304 if the client has them.

    The ETag is a digest of the body, and weak if the body may be compressed; a route can set its
    own.
    """
    tag = sent.get("etag")
    if tag is None and _is_cacheable(sent) and not response.is_streamed:
        digest = hashlib.blake2b(response.get_data(), digest_size=TAG_BYTES).hexdigest()
        tag = response.headers["ETag"] = f'W/"{digest}"'
    if tag is None or "HTTP_IF_NONE_MATCH" not in environ:
        return
    if not is_resource_modified(environ, tag.removeprefix("W/").strip('"')):
        response.status_code = 304
        for name in ("Content-Length", "Content-Disposition", "Content-Range"):
            response.headers.pop(name, None)
