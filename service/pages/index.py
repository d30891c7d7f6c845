"""`/`: the contents of this server, its state, and how to connect."""

from flask import Response

from service.mcp.versions import SUPPORTED
from service.pages import address, connect
from service.pages.holdings import health, holdings
from service.pages.layout import Layout
from service.running.readiness import readiness

PATH = "/"


def page(layout: Layout) -> Response:
    """The page. It needs no token, so it has no information that requires one."""
    state = readiness(layout.services)
    mounted = holdings(layout, state)
    ready, messages = health(layout.services, state)
    base = address.here(layout.services)
    return layout.page(
        "index.html",
        here=PATH,
        base=base,
        revisions=SUPPORTED,
        holdings=mounted,
        ready=ready,
        messages=messages,
        recommended=connect.recommended(base, mounted[0]),
        placeholder=connect.PLACEHOLDER,
    )
