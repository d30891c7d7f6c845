"""`GET /metrics` in the Prometheus format: what `noted` has counted, and the state of a worker.

Workers count in files in a folder that `serving` names before the first count; the worker that
answers adds them up. Without a folder it reports only its own counts.
"""

from collections.abc import Iterator
from hmac import compare_digest
from typing import Final

import prometheus_client
from flask import Blueprint, Flask, Response, request
from prometheus_client import CollectorRegistry, multiprocess
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from evidence.errors import Forbidden
from evidence.version import VERSION
from service import settings
from service.access import guard
from service.bootstrap import Services
from service.networks import is_loopback
from service.records.freshness import FAILED
from service.running.noted import REGISTRY

PATH: Final = "/metrics"
FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
SNAPSHOT: Final = ("status", "snapshot")
#: Headers that proxies add; with any of them, the peer is not the client.
FORWARDED: Final = (
    *("X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded", "Via"),
    *("X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip"),
)


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
        yield from self._of_sources()
        papers = self._services.papers
        if papers is not None:
            status = papers.status()
            labels = {name: str(status[name]) for name in SNAPSHOT if status.get(name)}
            yield InfoMetricFamily("rung_snapshot", "The papers snapshot that is served.", labels)

    def _of_sources(self) -> Iterator[Metric]:
        """How fresh the sources of the store are, without their names."""
        store = self._services.store
        if store is None:
            return
        now = store.activity.now()
        if not (sources := store.source_states.all(now)):
            return
        age = "Seconds since the last success of the source that is least up to date."
        oldest = max(source.age(now) for source in sources)
        yield GaugeMetricFamily("rung_sources_oldest_age_seconds", age, oldest)
        failed = float(sum(source.state(now) == FAILED for source in sources))
        yield GaugeMetricFamily("rung_sources_failed", "Sources whose last round failed.", failed)


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
    token = options.metrics_token
    if token and header and compare_digest(guard.bearer(header).encode(), token.encode()):
        return
    forwarded = any(name in request.headers for name in FORWARDED)
    if not forwarded and is_loopback(request.remote_addr):
        return
    raise Forbidden(
        "Metrics can be read only on the server's machine, or with the metrics token.",
        hint="The operator can set RUNG_METRICS_TOKEN, so that clients can send it as a bearer "
        "token, or set RUNG_METRICS=open.",
    )
