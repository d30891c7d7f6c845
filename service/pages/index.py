"""`/` for people: what this server holds, whether it is well, and the way to connect."""

from flask import Response

from service.mcp.versions import SUPPORTED
from service.pages import address, connect
from service.pages.holdings import health, holdings
from service.pages.layout import Layout
from service.running.readiness import readiness

PATH = "/"


def page(layout: Layout) -> Response:
    """The page. It is public, so it shows nothing that needs a token."""
    state = readiness(layout.services)
    mounted = holdings(layout, state)
    ready, said = health(layout.services, state)
    base = address.here(layout.services)
    return layout.page(
        "index.html",
        here=PATH,
        base=base,
        revisions=SUPPORTED,
        holdings=mounted,
        ready=ready,
        said=said,
        recommended=connect.recommended(base, mounted[0]),
        placeholder=connect.PLACEHOLDER,
    )
