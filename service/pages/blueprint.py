"""The pages of a deployment and their static files.

`/` shows the contents of this server, its state, and how to connect. `/docs/api` shows the OpenAPI
document in Swagger UI, served from files of its package.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from importlib.resources import files
from typing import Final

from flask import Blueprint, Flask, Response, redirect

from evidence.errors import EvidenceError
from service.mcp.versions import SUPPORTED
from service.openapi import PATH as DOCUMENT
from service.pages import connect, trial
from service.pages.holdings import contents, health, here, holdings
from service.pages.layout import PREFIX, SECURITY, Asset, Layout
from service.pages.reading import papers, records
from service.pages.reading.shown import BLOB_PATH, PAPER_PATH, PAPERS_PATH, PATH
from service.pages.reading.visits import Visits
from service.running.readiness import readiness

FRONT: Final = "/"
VIEWER: Final = "/docs/api"
#: The package of Swagger UI, and the two files the page needs.
SWAGGER: Final = "flask_swagger_ui"
SWAGGER_FILES: Final = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
}
#: The address contains the version, so its files never change.
SWAGGER_PREFIX: Final = f"/static/swagger/{version('flask-swagger-ui')}"
FOREVER = "public, max-age=31536000, immutable"
#: For addresses without a digest or with an old one: while a deployment is replaced, a page of one
#: release may request its files from the other.
CHECKED = "no-cache"
ICON = "icon.svg"


def mount(app: Flask, layout: Layout) -> tuple[Callable[[], Response], Callable[[], Response]]:
    """Adds the pages, their files below `/static` and the icon.

    Returns the pages of addresses that return JSON to programs: `/`, and the one for missing
    addresses.
    """
    routes = Blueprint("pages", __name__)
    viewer = {"prefix": SWAGGER_PREFIX, "document": DOCUMENT}
    for path, name, page in (
        (trial.PATH, "trial", lambda: trial.page(layout)),
        (connect.PATH, "connect", lambda: connect.page(layout)),
        (VIEWER, "viewer", lambda: layout.page("viewer.html", here=VIEWER, status=200, **viewer)),
    ):
        routes.add_url_rule(path, name, page)
    for name in SWAGGER_FILES:
        view = partial(lambda name: _answer(_swagger_file(name), FOREVER), name)
        routes.add_url_rule(f"{SWAGGER_PREFIX}/{name}", name.replace(".", "_"), view)
    routes.add_url_rule(f"{PREFIX}/<digest>/<name>", "file", partial(_file, layout))
    for name in ("icon.svg", "favicon.ico"):
        view = partial(_file, layout, "", ICON)
        routes.add_url_rule(f"/{name}", name.replace(".", "_"), view)
    app.register_blueprint(routes)
    app.register_blueprint(_reading(layout))
    return lambda: _front(layout), lambda: layout.page("missing.html", here="", status=404)


def _reading(layout: Layout) -> Blueprint:
    """The reading pages for what the server has: records, papers or both."""
    visits, routes = Visits(layout), Blueprint("reading", __name__)
    routes.register_error_handler(EvidenceError, visits.refused)
    routes.after_request(_private)
    routes.add_url_rule(PATH, "enter", visits.post, methods=["POST"])
    if layout.services.authority is not None:
        routes.add_url_rule(PATH, "search", lambda: records.search_page(visits))
        routes.add_url_rule(BLOB_PATH, "blob", lambda: records.blob(visits))
        routes.add_url_rule(
            f"{PATH}/<path:id>", "record", lambda id: records.record_page(visits, id)
        )
    else:
        routes.add_url_rule(PATH, "search", lambda: redirect(PAPERS_PATH))
    if layout.services.papers is not None:
        routes.add_url_rule(PAPERS_PATH, "papers", lambda: papers.search_page(visits))
        routes.add_url_rule(PAPER_PATH, "paper", lambda: papers.paper_page(visits))
    return routes


def _private(response: Response) -> Response:
    """Prevents caches from storing a page or showing it to another visitor."""
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["Vary"] = "Cookie"
    return response


def _front(layout: Layout) -> Response:
    """The front page.

    It needs no token, so it has no information that requires one. It shows the contents of the
    store to the owner, and to everyone if the settings allow it.
    """
    services = layout.services
    state = readiness(services)
    mounted = holdings(layout, state)
    ready, messages = health(services, state)
    base = here(services)
    owner, held = None, None
    with suppress(EvidenceError):  # reported by `health`
        owner = layout.owner()
        held = contents(layout, owner)
    response = layout.page(
        "index.html",
        here=FRONT,
        base=base,
        revisions=SUPPORTED,
        holdings=mounted,
        name=services.settings.title,
        contents=held,
        owner=owner is not None,
        sign_in=services.signins is not None,
        ready=ready,
        messages=messages,
        recommended=connect.recommended(base, mounted[0]),
        placeholder=connect.PLACEHOLDER,
    )
    if owner:
        response.headers["Cache-Control"] = "private, no-store"
    return response


@cache
def _swagger_file(name: str) -> Asset:
    path = files(SWAGGER).joinpath("dist", name)
    return Asset(path.read_bytes(), SWAGGER_FILES[name])


def _file(layout: Layout, digest: str, name: str) -> Response:
    asset = layout.assets.files.get(name)
    if asset is None:
        return Response("No such file.", 404, {**SECURITY, "Content-Type": "text/plain"})
    return _answer(asset, FOREVER if digest == layout.assets.digest else CHECKED)


def _answer(asset: Asset, cache_policy: str) -> Response:
    headers = {**SECURITY, "Cache-Control": cache_policy, "Content-Type": asset.media_type}
    return Response(asset.content, 200, headers)
