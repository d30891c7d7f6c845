"""The pages of a deployment and their static files.

`/` shows the contents of this server, its state, and how to connect; `/connect` has the
configuration of each client. `/try` calls each tool with arguments in JSON, as a host does; the
browser makes the calls itself. This server receives nothing typed into the form; the token is sent
only in the header of the calls. A link can fill the form of one tool with `?tool=…&arguments=…`.
`/docs/api` shows the OpenAPI document in Swagger UI, served from files of its package.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from importlib.resources import files
from typing import Final

import orjson
from flask import Blueprint, Flask, Response, redirect, request

from evidence.errors import EvidenceError
from evidence.text import json_line
from service.clients.table import CLIENTS, RECOMMENDED, Client, Snippet, install_link
from service.mcp.versions import MODERN, SUPPORTED
from service.openapi import PATH as DOCUMENT
from service.operations import OPERATIONS
from service.operations.base import AnyOperation
from service.operations.papers import PAPER_OPERATIONS
from service.pages.holdings import PAPERS, RECORDS, Holding
from service.pages.holdings import base_url, contents, health, holdings
from service.pages.layout import PREFIX, SECURITY, Asset, Layout, security
from service.pages.reading import attachments, papers, records, results
from service.pages.reading.shown import BLOB_PATH, PAPER_PATH, PAPERS_PATH, PATH
from service.pages.reading.visits import Visits
from service.running.readiness import readiness

FRONT: Final = "/"
CONNECT: Final = "/connect"
#: The placeholder for the token. Snippets are generated with it, so that every line has a place for
#: one; if the visitor types a token into the page, it replaces the placeholder.
PLACEHOLDER: Final = "YOUR_TOKEN"
TRY: Final = "/try"
TOOLS: Final[dict[str, Sequence[AnyOperation]]] = {RECORDS: OPERATIONS, PAPERS: PAPER_OPERATIONS}
#: Tools to show first; the page opens the first available one.
BEGINNING: Final = ("search", "search_papers")
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
        (TRY, "trial", lambda: _trial(layout)),
        (CONNECT, "connect", lambda: _connect(layout)),
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
        routes.add_url_rule(PATH, "search", lambda: results.search_page(visits))
        routes.add_url_rule(BLOB_PATH, "blob", lambda: attachments.blob(visits))
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
    for name, value in security().items():
        response.headers.setdefault(name, value)
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["Vary"] = "Cookie"
    return response


def _front(layout: Layout) -> Response:
    """The front page.

    It needs no token, so it has no information that requires one. It shows the contents of the
    store if the settings allow it.
    """
    services = layout.services
    state = readiness(services)
    mounted = holdings(layout, state)
    ready, messages = health(services, state)
    base = base_url(services)
    store_contents = None
    with suppress(EvidenceError):  # reported by `health`
        store_contents = contents(services)
    return layout.page(
        "index.html",
        here=FRONT,
        base=base,
        revisions=SUPPORTED,
        holdings=mounted,
        name=services.settings.title,
        contents=store_contents,
        sign_in=services.signins is not None,
        ready=ready,
        messages=messages,
        recommended=_recommended(base, mounted[0]),
        placeholder=PLACEHOLDER,
    )


def _connect(layout: Layout) -> Response:
    """`/connect`, for the surface that `?for=` names; the default is the first."""
    mounted = holdings(layout, readiness(layout.services))
    name = request.args.get("for")
    chosen = next((holding for holding in mounted if holding.name == name), mounted[0])
    base, sign_in = base_url(layout.services), layout.services.settings.signs_in
    return layout.page(
        "connect.html",
        here=CONNECT,
        base=base,
        url=base + chosen.mcp,
        holdings=mounted,
        chosen=chosen,
        recommended=_recommended(base, chosen),
        entries=[
            (client, _snippets(client, base, chosen), _link(client, base, chosen, sign_in=sign_in))
            for client in CLIENTS
        ],
        placeholder=PLACEHOLDER,
        sign_in=sign_in,
    )


def _recommended(base: str, holding: Holding) -> tuple[Snippet, ...]:
    """The setup that every client supports in some format."""
    return _snippets(RECOMMENDED, base, holding)


def _snippets(client: Client, base: str, holding: Holding) -> tuple[Snippet, ...]:
    return client.snippets(base + holding.mcp, "" if holding.open else PLACEHOLDER)


def _link(client: Client, base: str, holding: Holding, *, sign_in: bool) -> str:
    token = "" if holding.open or (sign_in and client.signs_in) else PLACEHOLDER
    return install_link(client, base + holding.mcp, token)


@dataclass(frozen=True, slots=True)
class Form:
    """One tool: the arguments that fill its form, and its examples, all as JSON."""

    operation: AnyOperation
    filled: str
    examples: Sequence[str]


def _trial(layout: Layout) -> Response:
    """The page with the form that `?tool=` names; the default is a search."""
    mounted = holdings(layout, readiness(layout.services))
    surfaces = [(holding, [_form(tool) for tool in TOOLS[holding.name]]) for holding in mounted]
    names = [form.operation.name for _, forms in surfaces for form in forms]
    candidates = (request.args.get("tool", ""), *BEGINNING)
    return layout.page(
        "try.html",
        here=TRY,
        surfaces=surfaces,
        chosen=next(name for name in candidates if name in names),
        revision=MODERN[0],
    )


def _form(operation: AnyOperation) -> Form:
    """The form of a tool, filled with the arguments in the URL if they are for this tool."""
    filled = operation.examples[0]
    if request.args.get("tool") == operation.name:
        with suppress(orjson.JSONDecodeError):
            arguments = orjson.loads(request.args.get("arguments", ""))
            filled = arguments if arguments and isinstance(arguments, dict) else filled
    return Form(
        operation, json_line(filled, indented=True), list(map(json_line, operation.examples))
    )


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
