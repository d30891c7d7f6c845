"""The pages of a deployment and their static files."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Blueprint, Flask, Response

from service.bootstrap import Services
from service.pages import connect, index, trial, viewer
from service.pages.assets import PREFIX
from service.pages.layout import SECURITY, Layout
from service.pages.reading.blueprint import blueprint as reading

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
    layout: Layout


def mount(app: Flask, services: Services, *, mcp_path: str, papers_path: str) -> Shared:
    """Adds the pages, their files below `/static/pages` and the icon.

    Returns those whose addresses answer programs too.
    """
    layout = Layout(services, mcp_path, papers_path)
    routes = Blueprint("pages", __name__)
    trial.add(routes, layout)
    connect.add(routes, layout)
    viewer.add(routes, layout)
    routes.add_url_rule(
        f"{PREFIX}/<digest>/<name>", "file", lambda digest, name: _file(layout, digest, name)
    )
    for path in ("/icon.svg", "/favicon.ico"):
        routes.add_url_rule(path, path.strip("/").replace(".", "_"), lambda: _icon(layout))
    app.register_blueprint(routes)
    app.register_blueprint(reading(layout))
    return Shared(
        lambda: index.page(layout),
        lambda: layout.page("missing.html", here="", status=404),
        layout,
    )


def _icon(layout: Layout) -> Response:
    return _file(layout, "", ICON)


def _file(layout: Layout, digest: str, name: str) -> Response:
    asset = layout.assets.files.get(name)
    if asset is None:
        return Response("No such file.", 404, {**SECURITY, "Content-Type": "text/plain"})
    cache = FOREVER if digest == layout.assets.digest else CHECKED
    headers = {**SECURITY, "Cache-Control": cache, "Content-Type": asset.media_type}
    return Response(asset.content, 200, headers)
