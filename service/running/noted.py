"""Records requests: lines in the log, and counts for `/metrics`.

The log on stdout has a JSON line for each event, or plain text for a person at a terminal. It
contains our own words only. The message of an exception is left out, because it may quote data:
its type and stack are logged, without the values of variables. Labels of counts come from closed
sets only.
"""

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from traceback import StackSummary, walk_tb
from types import TracebackType
from typing import Any, Final

import orjson
from gunicorn import glogging
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from service import settings

CAUSES_MAX: Final = 5
FIRST: Final = ("time", "level", "event", "request_id")

Event = dict[str, Any]

#: Attributes of every log record, which events do not show.
_USUAL: Final = logging.makeLogRecord({}).__dict__.keys()
_requests: Final = logging.getLogger("rung.request")
_written: Callable[[Event], None] | None = None


def log_request(event: Event, *, probe: bool = False) -> None:
    """Logs one line for a request; for a probe only at debug level."""
    level = logging.DEBUG if probe else logging.INFO
    if not _requests.isEnabledFor(level):
        return
    if _written is not None and not probe:
        _written(event)
    else:
        _requests.log(level, "request", extra=event)


def configure(format: str | None, level: str) -> None:
    """Sends all logs of this process to stdout.

    Without a format, logs are text on a terminal and JSON otherwise. A second call replaces the
    first.
    """
    chosen = format or ("text" if sys.stdout.isatty() else "json")
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Lines(_text if chosen == "text" else _json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    global _written
    _written = None if chosen == "text" else _writer(sys.stdout.fileno())
    # Its debug lines contain whole URLs, with queries.
    logging.getLogger("urllib3").setLevel(logging.WARNING)


class GunicornLog(glogging.Logger):  # type: ignore[misc]
    """Formats gunicorn's messages in the same way."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        effective = settings.load()
        configure(effective.log_format, effective.log_level)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def _writer(stdout: int) -> Callable[[Event], None]:
    """Returns a writer of the same JSON lines as `configure`, ten times as fast."""

    def write(event: Event) -> None:
        line = orjson.dumps({"time": _now(), "level": "info", "event": "request", **event})
        with suppress(OSError):  # requests are answered even if nobody reads the logs
            os.write(stdout, line + b"\n")

    return write


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class _Lines(logging.Formatter):
    """Formats log records as text."""

    def __init__(self, written: Callable[[Event], str]) -> None:
        super().__init__()
        self._written = written

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line; see the module for what it omits."""
        event: Event = {"event": record.getMessage()}
        if record.stack_info:
            event["stack_info"] = record.stack_info
        event |= {"level": record.levelname.lower(), "logger": record.name}
        event |= {name: value for name, value in record.__dict__.items() if name not in _USUAL}
        event["time"] = _now()
        if record.exc_info and record.exc_info[1] is not None:
            event["exception"] = stack(record.exc_info[1])
        return self._written(event)


def stack(error: BaseException) -> str:
    """Types and places of an exception and of its causes, the first cause last."""
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(parts) < CAUSES_MAX:
        parts.append(f"{type(cause).__qualname__}\n{_places(cause.__traceback__)}")
        hidden = cause.__suppress_context__
        cause = cause.__cause__ or (None if hidden else cause.__context__)
    return "caused by ".join(parts)


def _places(trace: TracebackType | None) -> str:
    return "".join(StackSummary.extract(walk_tb(trace), capture_locals=False).format())


def _json(event: Event) -> str:
    first = {name: event.pop(name) for name in FIRST if name in event}
    return orjson.dumps({**first, **event}, default=lambda value: type(value).__name__).decode()


def _text(event: Event) -> str:
    """An event on one line for a person, and the stack of an exception below it."""
    short = _short(event)
    trace = short.pop("exception", "").rstrip()
    first = f"{short.pop('time')} {short.pop('level'):<7} {short.pop('event')}"
    details = [f"{name}={value}" for name, value in short.items()]
    return "\n".join(filter(None, [" ".join([first, *details]), trace]))


def _short(event: Event) -> Event:
    """A request in short form: `GET /v1/search 200 4.5 ms`."""
    if event.get("logger") != _requests.name:
        return event
    summary = f"{event['method']} {event['route']} {event['status']} {event['ms']} ms"
    names = ("time", "level", "operation", "error", "request_id")
    return {"event": summary, **{name: event[name] for name in names if name in event}}


FALLBACK_LABEL: Final = "other"
#: The error codes with their own label; all others come from upstreams.
CODES: Final = frozenset("""
    access_off ambiguous_blob ambiguous_connection ambiguous_paper ambiguous_schema_detail api_error
    asset_fetch_failed asset_parse_failed authentication_error blob_not_found
    conflicting_connection_id connection_not_found cursor_expired deadline_exceeded field_not_found
    field_not_granted field_not_text grant_expired grant_revoked grant_stream_not_allowed
    host_not_allowed introspection_failed invalid_argument invalid_authorization_details
    invalid_client_metadata invalid_cursor invalid_expand invalid_field_path invalid_filter
    invalid_grant invalid_manifest invalid_query invalid_redirect_uri invalid_request invalid_sort
    invalid_token invalid_window member_token_sealed method_not_allowed not_found origin_not_allowed
    paper_not_found permission_error query_not_found query_too_broad range_not_satisfiable
    rate_limit_exceeded rate_limited request_too_large response_too_large semantic_unavailable
    snapshot_refused snapshot_unavailable source_not_available store_unavailable
    template_not_available translation_not_available unsupported_by_source unsupported_media_type
    unsupported_version upstream_busy upstream_invalid_response upstream_timeout upstream_too_large
    upstream_unreachable -32700 -32600 -32601 -32602 -32603 -32002 -32020 -32021 -32022
    """.split())
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
UPSTREAM_OUTCOMES: Final = frozenset({"2xx", "3xx", "4xx", "5xx"}) | CODES

REGISTRY: Final = CollectorRegistry()


def _counter(name: str, help: str, *labels: str) -> Counter:
    return Counter(name, help, labels, registry=REGISTRY)


REQUESTS: Final = _counter("rung_requests", "Requests served.", "surface", "operation", "status")
ERRORS: Final = _counter("rung_errors", "Error responses, by code.", "surface", "code")
LIMITED: Final = _counter("rung_rate_limited", "Requests refused by a rate limit.", "surface")
BYTES: Final = _counter("rung_response_bytes", "Bytes of response bodies.", "surface")
UPSTREAM: Final = _counter(
    "rung_upstream_outcomes",
    "Outcomes of upstream requests; an interrupted request counts twice.",
    "outcome",
)
LATENCY: Final = Histogram(
    "rung_request_seconds",
    "Request duration in seconds.",
    ("surface", "operation"),
    buckets=SECONDS,
    registry=REGISTRY,
)
IN_FLIGHT: Final = Gauge(
    "rung_requests_in_flight",
    "Requests in progress.",
    registry=REGISTRY,
    multiprocess_mode="livesum",
)


def count(surface: str, operation: str, status: int, seconds: float, size: int, error: str) -> None:
    """Counts one answer. `error` is its code, or ""."""
    requests, latency, sent = _counters(surface, operation, f"{status // 100}xx")
    requests.inc()
    latency.observe(seconds)
    sent.inc(size)
    if error:
        ERRORS.labels(surface, error if error in CODES else FALLBACK_LABEL).inc()
    if status == 429:
        LIMITED.labels(surface).inc()


@lru_cache(maxsize=None)
def _counters(surface: str, operation: str, status: str) -> tuple[Counter, Histogram, Counter]:
    """The counters of a kind of response. Labels are a closed set."""
    return (
        REQUESTS.labels(surface, operation, status),
        LATENCY.labels(surface, operation),
        BYTES.labels(surface),
    )


def upstream(outcome: str) -> None:
    """Counts the outcome of an upstream request."""
    UPSTREAM.labels(outcome if outcome in UPSTREAM_OUTCOMES else FALLBACK_LABEL).inc()
