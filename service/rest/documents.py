"""Serves `/openapi.json` and `/llms.txt`."""

from collections.abc import Callable

from flask import Blueprint, Flask, Response

from service import llms, openapi
from service.bootstrap import Services
from service.openapi import Mounted

#: Caches may keep them but must revalidate: routes change with a deployment.
HEADERS = {"Cache-Control": "no-cache"}


def mount(app: Flask, services: Services) -> None:
    """Adds the documents. Both are the same for everybody, so any page may read them."""
    mounted = Mounted(
        records=services.authority is not None,
        papers=services.papers is not None,
        closed=bool(services.settings.papers_tokens),
        public_url=services.settings.public_url,
    )
    routes = Blueprint("documents", __name__)
    for path, media_type, content in (
        (openapi.PATH, "application/json", openapi.encoded),
        (llms.PATH, "text/plain; charset=utf-8", llms.encoded),
    ):
        routes.add_url_rule(
            path, path.strip("/").replace(".", "_"), _view(mounted, media_type, content)
        )
    app.register_blueprint(routes)


def _view(
    mounted: Mounted, media_type: str, content: Callable[[Mounted], bytes]
) -> Callable[[], Response]:
    def view() -> Response:
        return Response(content(mounted), 200, {**HEADERS, "Content-Type": media_type})

    return view
