"""The pages of a deployment and their static files.

`/` is the contents of this server, its state, and how to connect. `/docs/api` is the OpenAPI
document for people, by Swagger UI from files of its package.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Final

from flask import Blueprint, Flask, Response

from evidence.errors import EvidenceError
from service.mcp.versions import SUPPORTED
from service.openapi import PATH as DOCUMENT
from service.pages import connect, trial
from service.pages.holdings import contents, health, here, holdings
from service.pages.layout import PREFIX, SECURITY, Asset, Layout
from service.pages.reading.blueprint import blueprint as reading
from service.running.readiness import readiness

FRONT: Final = "/"
VIEWER: Final = "/docs/api"
#: The package of Swagger UI, and the two files the page needs.
SWAGGER: Final = "flask_swagger_ui"
SWAGGER_FILES: Final = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
}
#: The address has the version, so its files never change.
SWAGGER_PREFIX: Final = f"/static/swagger/{version('flask-swagger-ui')}"
FOREVER = "public, max-age=31536000, immutable"
#: Of addresses without a digest, and of a digest that was: while a deployment is replaced, a page
#: of the one release asks the other for its files.
CHECKED = "no-cache"
ICON = "icon.svg"


@dataclass(frozen=True, slots=True)
class Shared:
    """The pages at addresses that give programs JSON: `/`, and the page for missing addresses."""

    front: Callable[[], Response]
    missing: Callable[[], Response]


def mount(app: Flask, layout: Layout) -> Shared:
    """Adds the pages, their files below `/static` and the icon.

    Returns those whose addresses answer programs too.
    """
    routes = Blueprint("pages", __name__)
    trial.add(routes, layout)
    connect.add(routes, layout)
    routes.add_url_rule(VIEWER, "viewer", lambda: _viewer(layout))
    for name in SWAGGER_FILES:
        routes.add_url_rule(
            f"{SWAGGER_PREFIX}/{name}",
            name.replace(".", "_"),
            lambda name=name: _answer(_swagger_file(name), FOREVER),
        )
    routes.add_url_rule(
        f"{PREFIX}/<digest>/<name>", "file", lambda digest, name: _file(layout, digest, name)
    )
    for path in ("/icon.svg", "/favicon.ico"):
        routes.add_url_rule(
            path, path.strip("/").replace(".", "_"), lambda: _file(layout, "", ICON)
        )
    app.register_blueprint(routes)
    app.register_blueprint(reading(layout))
    return Shared(
        lambda: _front(layout),
        lambda: layout.page("missing.html", here="", status=404),
    )


def _front(layout: Layout) -> Response:
    """The page. It needs no token, so it has no information that requires one.

    It shows the contents of the store to the owner, and to everyone if the settings allow it.
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


def _viewer(layout: Layout) -> Response:
    return layout.page("viewer.html", here=VIEWER, prefix=SWAGGER_PREFIX, document=DOCUMENT)


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
