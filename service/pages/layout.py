"""The frame around every page, the static files, and the headers of both."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from flask import Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from evidence.text import visible
from evidence.version import VERSION
from service.bootstrap import Services
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
        for one in sorted(folder.iterdir(), key=lambda one: one.name):
            ending = "." + one.name.rpartition(".")[2]
            if ending in TYPES:
                asset = self.files[one.name] = Asset(one.read_bytes(), TYPES[ending])
                whole.update(one.name.encode() + b"\0" + sha256(asset.content).digest())
        self.digest = whole.hexdigest()[:DIGEST_CHARS]

    def address(self, name: str) -> str:
        """The address of a file; raises `KeyError` for an unknown one."""
        self.files[name]
        return f"{PREFIX}/{self.digest}/{name}"


POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: The headers of every page and every file of a page.
SECURITY: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # with no-referrer, forms send `Origin: null`
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
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

    def page(self, template: str, *, here: str, status: int = 200, **context: Any) -> Response:
        """A page as a response. `here` is its path, which the header marks."""
        text = self._environment.get_template(template).render(here=here, **context)
        return Response(text, status, {**SECURITY, **HTML})
