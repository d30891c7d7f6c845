"""The frame around every page, the static files, and the headers of pages and files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from flask import Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from evidence.cached import cached_property
from evidence.text import visible
from evidence.version import VERSION
from service.bootstrap import Services
from service.pages import session_path
from service.pages.reading.shown import FILTERS

PREFIX = "/static/pages"
DIGEST_CHARS = 12
#: The served files; nothing else in the folder is served.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """One file as served."""

    content: bytes
    media_type: str


class Assets:
    """Every file of `static/`. All share one digest, so that modules import each other by name."""

    def __init__(self) -> None:
        folder, whole = files("service.pages").joinpath("static"), sha256()
        self.files: dict[str, Asset] = {}
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            ending = "." + file.name.rpartition(".")[2]
            if ending in TYPES:
                asset = self.files[file.name] = Asset(file.read_bytes(), TYPES[ending])
                whole.update(file.name.encode() + b"\0" + sha256(asset.content).digest())
        self.digest = whole.hexdigest()[:DIGEST_CHARS]

    def address(self, name: str) -> str:
        """The address of a file; raises `KeyError` for an unknown one."""
        self.files[name]
        return f"{PREFIX}/{self.digest}/{name}"


POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # with no-referrer, forms send `Origin: null`
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def security() -> dict[str, str]:
    """The headers of every page and every file of a page."""
    inside = {"Referrer-Policy": session_path.REFERRER_POLICY} if session_path.current() else {}
    return SECURITY | inside


HTML: Final = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache"}

#: The header's links in their order: (path, name).
PLACES: Final = (
    ("/", "Home"),
    ("/read", "Read"),
    ("/connect", "Connect"),
    ("/try", "Try"),
    ("/docs/api", "API docs"),
)


@dataclass(frozen=True)
class Layout:
    """Renders templates of `templates/` into answers. The paths are those of the MCP endpoints.

    `owner` returns the session of the owner if the request has one.
    Each template is compiled when it is first shown: compiling all would dominate the start of a
    server.
    """

    services: Services
    mcp_path: str
    papers_path: str
    owner: Callable[[], str | None]
    assets: Assets = field(default_factory=Assets)

    @cached_property
    def _environment(self) -> Environment:
        environment = Environment(
            loader=PackageLoader("service.pages"),
            autoescape=True,
            undefined=StrictUndefined,
            # Record text can be anything; `Markup` values are our own.
            finalize=lambda value: visible(value) if type(value) is str else value,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals |= {"asset": self.assets.address, "places": PLACES, "version": VERSION}
        environment.filters |= FILTERS
        return environment

    def page(
        self, template: str, *, here: str, status: int = 200, session: Any = None, **context: Any
    ) -> Response:
        """A page as a response. `here` is its path, which the header marks.

        `session` is what `session.js` does: `act` is "seek" on a page for visitors without a
        session, "replace" on one that begins another, and "begin" or "end", which go on to `to`
        below the path `path`.
        """
        context |= {"here": here, "root": session_path.current()}
        if session:
            session = {"path": "", "to": "", **session}
        text = self._environment.get_template(template).render(session=session, **context)
        return Response(text, status, {**security(), **HTML})

    def begun(self, path: str, to: str) -> Response:
        """The page that begins a session below a path and goes on to a plain address. It is not a
        redirect, because programs on the way log those."""
        return self._onward({"act": "begin", "path": path, "to": to})

    def ended(self, to: str) -> Response:
        """The page that ends the session of this request and goes on."""
        return self._onward({"act": "end", "to": to})

    def _onward(self, session: Mapping[str, str]) -> Response:
        response = self.page("onward.html", here="", session=session)
        response.headers["Cache-Control"] = "private, no-store"
        return response
