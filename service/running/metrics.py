"""`GET /metrics` in the Prometheus format. Labels come from closed sets only.

Workers count in files in a folder that `serving` names before the first count; the worker that
answers adds them up. Without a folder it reports only its own counts.
"""

from collections.abc import Iterator
from functools import lru_cache
from hmac import compare_digest
from typing import Final

import prometheus_client
from flask import Blueprint, Flask, Response, request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, multiprocess
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from evidence.errors import Forbidden
from evidence.version import VERSION
from service import settings
from service.access import guard
from service.bootstrap import Services

PATH: Final = "/metrics"
OTHER: Final = "other"
FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
#: The error codes with their own label; all others come from upstreams.
CODES: Final = frozenset("""
    access_off ambiguous_connection ambiguous_paper ambiguous_schema_detail api_error
    asset_fetch_failed asset_parse_failed authentication_error blob_not_found
    conflicting_connection_id
    connection_not_found cursor_expired deadline_exceeded field_not_found field_not_granted
    field_not_text grant_expired grant_revoked grant_stream_not_allowed host_not_allowed
    introspection_failed invalid_argument invalid_authorization_details invalid_client_metadata
    invalid_cursor invalid_expand invalid_field_path
    invalid_filter invalid_grant invalid_manifest invalid_query invalid_redirect_uri
    invalid_request invalid_sort
    invalid_token invalid_window member_token_sealed method_not_allowed not_found origin_not_allowed
    paper_not_found permission_error query_not_found range_not_satisfiable rate_limit_exceeded
    request_too_large response_too_large snapshot_refused snapshot_unavailable
    source_not_available store_unavailable template_not_available translation_not_available
    unsupported_by_source unsupported_media_type unsupported_version upstream_busy
    upstream_invalid_response upstream_timeout upstream_too_large upstream_unreachable
    -32700 -32600 -32601 -32602 -32603 -32002 -32020 -32021 -32022
    """.split())
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
UPSTREAM_OUTCOMES: Final = frozenset({"2xx", "3xx", "4xx", "5xx"}) | CODES
SNAPSHOT: Final = ("status", "snapshot")
#: Headers that proxies add; with any of them, the peer is not the client.
FORWARDED: Final = (
    *("X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded", "Via"),
    *("X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip"),
)

REGISTRY: Final = CollectorRegistry()


def _counter(name: str, help: str, *labels: str) -> Counter:
    return Counter(name, help, labels, registry=REGISTRY)


REQUESTS: Final = _counter("rung_requests", "Requests served.", "surface", "operation", "status")
ERRORS: Final = _counter("rung_errors", "Error responses, by code.", "surface", "code")
LIMITED: Final = _counter("rung_rate_limited", "Requests refused by a rate limit.", "surface")
BYTES: Final = _counter("rung_response_bytes", "Bytes of response bodies.", "surface")
UPSTREAM: Final = _counter(
    "rung_upstream_outcomes",
    "Outcomes of upstream requests; an interrupted one counts twice.",
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
        ERRORS.labels(surface, error if error in CODES else OTHER).inc()
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
    UPSTREAM.labels(outcome if outcome in UPSTREAM_OUTCOMES else OTHER).inc()


def exposition(services: Services) -> bytes:
    """All counts in the text format, with the state of this worker."""
    path = settings.environment().get(FOLDER_VARIABLE)
    counts = REGISTRY
    if path:
        counts = CollectorRegistry()
        multiprocess.MultiProcessCollector(counts, path)  # type: ignore[no-untyped-call]
    state = CollectorRegistry()
    state.register(_State(services, shared=bool(path)))
    return prometheus_client.generate_latest(counts) + prometheus_client.generate_latest(state)


class _State:
    """The state of this worker."""

    def __init__(self, services: Services, *, shared: bool) -> None:
        self._services, self._shared = services, shared

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("rung_build", "The running version.", {"version": VERSION})
        covered = "1 if counts cover all workers, 0 if they cover one."
        yield GaugeMetricFamily("rung_metrics_shared", covered, float(self._shared))
        closing = float(self._services.closing.is_set())
        yield GaugeMetricFamily("rung_closing", "1 if this worker is shutting down.", closing)
        papers = self._services.papers
        if papers is not None:
            status = papers.status()
            kept = {name: str(status[name]) for name in SNAPSHOT if status.get(name)}
            yield InfoMetricFamily("rung_snapshot", "The papers snapshot that is served.", kept)


def mount(app: Flask, services: Services) -> None:
    """Adds `/metrics`, unless it is switched off."""
    if services.settings.metrics == "off":
        return
    headers = {"Cache-Control": "no-store", "Content-Type": prometheus_client.CONTENT_TYPE_LATEST}

    def view() -> Response:
        check_reader(services.settings)
        return Response(exposition(services), 200, headers)

    routes = Blueprint("metrics", __name__)
    routes.add_url_rule(PATH, "metrics", view)
    app.register_blueprint(routes)


def check_reader(options: settings.Settings) -> None:
    """Raises `Forbidden` unless metrics are open, the token is right, or the peer is local."""
    if options.metrics == "open":
        return
    header = request.headers.get("Authorization", "")
    known = options.metrics_token
    if known and header and compare_digest(guard.bearer(header).encode(), known.encode()):
        return
    forwarded = any(name in request.headers for name in FORWARDED)
    if not forwarded and guard.is_loopback(request.remote_addr):
        return
    raise Forbidden(
        "Metrics can be read only on this machine, or with the metrics token.",
        hint="The operator can set RUNG_METRICS_TOKEN, which clients send as `Authorization: "
        "Bearer`, or RUNG_METRICS=open.",
    )
