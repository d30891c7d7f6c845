"""`/docs/api`: the OpenAPI document for people, by Swagger UI from files of its package."""

from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Final

from flask import Blueprint, Response

from service.openapi import PATH as DOCUMENT
from service.pages.assets import Asset
from service.pages.layout import SECURITY, Layout

PATH: Final = "/docs/api"
PACKAGE: Final = "flask_swagger_ui"
VERSION: Final = version("flask-swagger-ui")
FILES: Final = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
}
#: The address has the version, so its files never change.
PREFIX: Final = f"/static/swagger/{VERSION}"
FOREVER: Final = "public, max-age=31536000, immutable"


def add(routes: Blueprint, layout: Layout) -> None:
    """Adds the page and the two files of Swagger UI it needs."""
    routes.add_url_rule(PATH, "viewer", lambda: _page(layout))
    for name in FILES:
        endpoint = name.replace(".", "_")
        routes.add_url_rule(f"{PREFIX}/{name}", endpoint, lambda name=name: _file(name))


def _page(layout: Layout) -> Response:
    return layout.page("viewer.html", here=PATH, prefix=PREFIX, document=DOCUMENT)


def _file(name: str) -> Response:
    asset = _asset(name)
    headers = {**SECURITY, "Cache-Control": FOREVER, "Content-Type": asset.media_type}
    return Response(asset.content, 200, headers)


@cache
def _asset(name: str) -> Asset:
    path = files(PACKAGE).joinpath("dist", name)
    return Asset(path.read_bytes(), FILES[name])
