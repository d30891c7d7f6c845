"""`/connect`: configuration for each client, with this server's URL."""

from typing import Final

from flask import Response, request

from service.clients.table import CLIENTS, RECOMMENDED, Client, Snippet, install_link
from service.pages.holdings import Holding, here, holdings
from service.pages.layout import Layout
from service.running.readiness import readiness

PATH: Final = "/connect"
#: The placeholder for the token. Snippets are generated with it, so that every line has a place for
#: one; if the visitor types a token into the page, it replaces the placeholder.
PLACEHOLDER: Final = "YOUR_TOKEN"


def page(layout: Layout) -> Response:
    """The page for the surface that `?for=` names; the default is the first."""
    mounted = holdings(layout, readiness(layout.services))
    wanted = request.args.get("for")
    chosen = next((each for each in mounted if each.name == wanted), mounted[0])
    base, sign_in = here(layout.services), layout.services.settings.signs_in
    return layout.page(
        "connect.html",
        here=PATH,
        base=base,
        url=base + chosen.mcp,
        holdings=mounted,
        chosen=chosen,
        recommended=recommended(base, chosen),
        entries=[
            (client, _snippets(client, base, chosen), _link(client, base, chosen, sign_in=sign_in))
            for client in CLIENTS
        ],
        placeholder=PLACEHOLDER,
        sign_in=sign_in,
    )


def recommended(base: str, holding: Holding) -> tuple[Snippet, ...]:
    """The setup that every client supports in some format."""
    return _snippets(RECOMMENDED, base, holding)


def _snippets(client: Client, base: str, holding: Holding) -> tuple[Snippet, ...]:
    return client.snippets(base + holding.mcp, "" if holding.open else PLACEHOLDER)


def _link(client: Client, base: str, holding: Holding, *, sign_in: bool) -> str:
    token = "" if holding.open or (sign_in and client.signs_in) else PLACEHOLDER
    return install_link(client, base + holding.mcp, token)
