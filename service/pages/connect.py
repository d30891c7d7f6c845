"""`/connect`: configuration for each client, with this server's URL."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flask import Blueprint, Response, request

from service.clients.client import Client, Snippet
from service.clients.table import CLIENTS, RECOMMENDED
from service.pages.holdings import Holding, here, holdings
from service.pages.layout import Layout
from service.running.readiness import readiness

PATH: Final = "/connect"
#: The placeholder of the token. Clients get it as a token, so that every line has room for one.
PLACEHOLDER: Final = "YOUR_TOKEN"


@dataclass(frozen=True, slots=True)
class Block:
    """Text to paste. `parts` are its pieces, split where a token goes.

    The visitor may type one into the page, which then fills the gaps.
    """

    label: str
    place: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A client with its snippets, and the command that writes its file, if any."""

    client: Client
    blocks: tuple[Block, ...]
    command: Block | None


def add(routes: Blueprint, layout: Layout) -> None:
    """Adds the page."""
    routes.add_url_rule(PATH, "connect", lambda: _page(layout))


def _page(layout: Layout) -> Response:
    """The page for the surface that `?for=` names, by default the first."""
    mounted = holdings(layout, readiness(layout.services))
    wanted = request.args.get("for")
    chosen = next((each for each in mounted if each.name == wanted), mounted[0])
    base = here(layout.services)
    url = base + chosen.mcp
    return layout.page(
        "connect.html",
        here=PATH,
        base=base,
        url=url,
        holdings=mounted,
        chosen=chosen,
        recommended=recommended(base, chosen),
        entries=[_entry(client, url, chosen) for client in CLIENTS],
        placeholder=PLACEHOLDER,
        sign_in=_block(Snippet("URL", "", url)) if layout.services.settings.signs_in else None,
        commands={
            name: _shell(f"rung {arguments}")
            for name, arguments in (
                ("grant", "grant create --connection NAME --expires 30d"),
                ("connect", f"connect {url}"),
                ("doctor", f"doctor {url}"),
            )
        },
    )


def recommended(base: str, holding: Holding) -> tuple[Block, ...]:
    """The setup that every client supports in some format."""
    return tuple(_blocks(RECOMMENDED, base + holding.mcp, holding))


def _entry(client: Client, url: str, holding: Holding) -> Entry:
    written = client.config is not None
    snippet = Snippet("Or write it with rung", "sh", f"rung connect {url} --client {client.name}")
    command = _block(snippet) if written else None
    return Entry(client, tuple(_blocks(client, url, holding)), command)


def _blocks(client: Client, url: str, holding: Holding) -> Iterator[Block]:
    for snippet in client.snippets(url, "" if holding.open else PLACEHOLDER):
        yield _block(snippet)


def _shell(text: str) -> Block:
    return _block(Snippet("Shell", "sh", text))


def _block(snippet: Snippet) -> Block:
    return Block(snippet.label, snippet.place, tuple(snippet.text.split(PLACEHOLDER)))
