"""Reports whether the service is ready, and if not, why."""

from typing import Any

from evidence.errors import EvidenceError
from service.bootstrap import Services

READY, CLOSING = "ready", "closing"
PUBLIC = frozenset({"status", "refused"})  # of papers that need a token


def readiness(services: Services) -> dict[str, Any]:
    """{status, reason?, papers?, upstream?}; the service is ready if `status` is `ready`.

    An unreachable upstream is reported but does not fail readiness. No request is sent to check it,
    and errors of its callers explain more than a router would.
    """
    body: dict[str, Any] = {"status": READY}
    if services.papers is not None:
        papers, closed = services.papers.status(), services.settings.papers_tokens
        body["papers"] = {key: fact for key, fact in papers.items() if key in PUBLIC or not closed}
        body["status"] = body["papers"]["status"]
    if services.upstream is not None:
        body["upstream"] = {"failing": services.upstream.breaker.is_open}
    try:
        if services.store is not None:
            services.store.ready()
    except EvidenceError as error:
        body |= {"status": "unavailable", "reason": error.message}
    if services.closing.is_set():
        body |= {"status": CLOSING, "reason": "This server is shutting down."}
    return body
