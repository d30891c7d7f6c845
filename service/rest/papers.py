"""REST under /papers/v1: one loop over the operations; next calls are links in the body."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Flask, Response, g, request

from evidence import papers_wire
from service.access.guard import Guard
from service.bootstrap import Services
from service.operations.base import PaperOperation, run_bounded
from service.operations import paper_links as links
from service.operations.papers import PAPER_OPERATIONS
from service.rest import arguments, web

PREFIX = "/papers/v1"
HEADERS: dict[str, str] = {}
#: For an open library: snapshots change rarely, and a minute of delay does no harm.
OPEN_HEADERS = {
    "Cache-Control": "public, max-age=60, stale-while-revalidate=600",
    "Vary": "Origin",
}


def mount(app: Flask, services: Services, guard: Guard) -> None:
    """Adds the routes under /papers/v1 to an application that is `web.prepare`d."""
    routes = Blueprint("papers", __name__)
    routes.before_request(lambda: _open(services, guard))
    for operation in PAPER_OPERATIONS:
        paths = {operation.route.path: {}, **operation.route.variants}
        for number, (path, fixed) in enumerate(paths.items()):
            rule = path.replace("<", "<segment:")
            routes.add_url_rule(rule, f"{operation.name}_{number}", _view(operation, fixed))
    app.register_blueprint(routes)


def _open(services: Services, guard: Guard) -> None:
    g.session = services.open_papers(web.begin(guard), PREFIX)


def _view(operation: PaperOperation, fixed: dict[str, Any]) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        given, _ = arguments.read(operation, web.query(), fixed=fixed)
        asked = operation.load_rest({**given, **path, **fixed})
        body = papers_wire.body(run_bounded(operation, g.session, asked), links.as_links)
        here = request.environ["PATH_INFO"] + (f"?{web.query()}" if web.query() else "")
        return web.page(links.body(body, here))

    return view
