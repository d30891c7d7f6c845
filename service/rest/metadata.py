"""Routes that need no token: discovery, the documents of the service, and health."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import orjson
from flask import Blueprint, Flask, Response

from evidence.errors import EvidenceError
from evidence.version import VERSION
from service import llms, openapi
from service.access.guard import SCOPE, WELL_KNOWN
from service.bootstrap import Services
from service.openapi import Mounted
from service.ports import SEARCH_EXTENSIONS
from service.rest.web import prefers_page
from service.running.readiness import READY, readiness

#: Caches may keep documents but must revalidate, because routes change with a deployment.
DOCUMENT_HEADERS = {"Cache-Control": "no-cache"}


def mount(
    app: Flask, services: Services, paths: Sequence[str], page: Callable[[], Response]
) -> None:
    """Adds `/`, `/healthz`, `/readyz`, `/openapi.json`, `/llms.txt` and the well-known documents.

    Browsers, which prefer HTML, get `page` at `/`; programs get the discovery index. `paths` are
    those of the surfaces that need a token; clients that request no path get the first. Without
    authorization servers there are no well-known documents.
    """

    def ready() -> Response:
        """200 if the service is ready, otherwise 503 with the reason."""
        body = readiness(services)
        return _json(body, 200 if body["status"] == READY else 503)

    routes = Blueprint("metadata", __name__)
    routes.add_url_rule("/", "index", lambda: _front(services, page))
    routes.add_url_rule("/healthz", "healthz", lambda: _json({"status": "ok"}))
    routes.add_url_rule("/readyz", "readyz", ready)
    suffixes = ("", *paths, *(f"{path}/" for path in paths)) if services.issuers else ()
    for number, suffix in enumerate(suffixes):
        view = partial(_json, _resource(services, suffix or paths[0]))
        routes.add_url_rule(WELL_KNOWN + suffix, f"resource_{number}", view)
    app.register_blueprint(routes)
    _mount_documents(app, services)


def _mount_documents(app: Flask, services: Services) -> None:
    """Adds the documents. Both are the same for everybody, so any page may read them."""
    mounted = Mounted(
        records=services.authority is not None,
        papers=services.papers is not None,
        closed=bool(services.settings.papers_tokens),
        public_url=services.settings.public_url,
        semantic=services.has_encoder,
    )
    json_type, text_type = "application/json", "text/plain; charset=utf-8"
    routes = Blueprint("documents", __name__)
    routes.add_url_rule(
        openapi.PATH, "openapi_json", lambda: _document(openapi.encoded(mounted), json_type)
    )
    routes.add_url_rule(llms.PATH, "llms_txt", lambda: _document(llms.encoded(mounted), text_type))
    app.register_blueprint(routes)


def _document(content: bytes, media_type: str) -> Response:
    return Response(content, 200, {**DOCUMENT_HEADERS, "Content-Type": media_type})


def _resource(services: Services, path: str) -> dict[str, Any]:
    """The metadata of the surface at a path, with the URL that clients looked it up by."""
    own = {"scopes_supported": [SCOPE], "resource_name": "Rung"} if services.signins else {}
    return {
        "resource": services.settings.base + path,
        "authorization_servers": list(services.issuers),
        "bearer_methods_supported": ["header"],
        **own,
    }


def _front(services: Services, page: Callable[[], Response]) -> Response:
    """The page for people or the index for programs, whichever the Accept header prefers."""
    response = page() if prefers_page() else _index(services)
    response.headers["Vary"] = "Accept"
    return response


def _index(services: Services) -> Response:
    """The served surfaces and their addresses."""
    links: dict[str, str] = {}
    if services.papers is not None:
        links |= {"papers": "/papers/v1", "papers_mcp": "/mcp/papers", "mcp": "/mcp"}
    if services.authority is not None:
        links |= {"schema": "/v1/schema", "core_query_base": "/v1", "mcp": "/mcp"}
    index: dict[str, Any] = {
        "object": "pdpp_discovery_index",
        "resource_name": "Rung",
        "role": "resource_server",
        "version": VERSION,
        "links": links,
    }
    if services.store is not None and services.upstream is None:
        index["capabilities"] = {"lexical_retrieval": _search()}
        with suppress(EvidenceError):  # of a store that cannot be read now
            if services.store.searches_by_meaning():
                index["capabilities"] |= {
                    f"{mode}_retrieval": {
                        "supported": True,
                        "endpoint": f"/v1/search/{mode}",
                        "score": {"supported": False},
                    }
                    for mode in ("semantic", "hybrid")
                }
    return _json(index)


def _search() -> dict[str, Any]:
    """The search arguments that a store supports beyond PDPP, for servers in front of it."""
    return {
        "supported": True,
        "endpoint": "/v1/search",
        "parameters": [*SEARCH_EXTENSIONS],
        "score": {"supported": False},
    }


def _json(body: dict[str, Any], status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    response = Response(orjson.dumps(body), status, headers)
    response.headers["Content-Type"] = "application/json; charset=utf-8"
    return response
