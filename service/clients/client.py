"""What is known of a client, in types: what to paste, and the file it reads its servers from."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from evidence.errors import InvalidRequest
from service.clients.place import Place

#: The environment variable that clients read the token from, where they can.
TOKEN_VARIABLE = "RUNG_TOKEN"

#: Stands for a token that is not shown.
PLACEHOLDER = "rung_…"

#: What people copy of an address, and the MCP endpoint beside it.
ENDPOINTS = {"/papers/v1": "/mcp/papers", "/v1": "/mcp", "": "/mcp"}

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text to paste. `language` is sh, json, toml, yaml or text; `place` a file, "" for a shell."""

    label: str
    language: str
    text: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Launcher:
    """How a client starts a server on its own machine: a command and its arguments."""

    command: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Credential:
    """The bearer of an entry: as `text` stands for it in the file, which may be a reference.

    `inline` says that `text` is the token itself. An empty text is no bearer at all.
    """

    text: str
    inline: bool


@dataclass(frozen=True, slots=True)
class Config:
    """The file a client reads its servers from.

    `table` is the key its servers stand under. `reference` is how a token outside the file is
    named in it, with `{name}` for the name of the server; "" where the client knows no such way.
    `http` and `stdio` give the entry of one server. `prompts` says that the reference is to an
    input the client asks for, which stands in the file too.
    """

    language: str
    table: str
    places: Mapping[str, Place]
    http: Callable[[str, Credential], Entry]
    stdio: Callable[[Launcher, Credential], Entry]
    reference: str = ""
    prompts: bool = False

    def credential(self, token: str, name: str, *, inline: bool = False) -> Credential:
        """The bearer as it stands in the file: a reference if there is one, else the token."""
        if token and self.reference and not inline:
            return Credential(self.reference.replace("{name}", name), inline=False)
        return Credential(token, inline=bool(token))


@dataclass(frozen=True, slots=True)
class Client:
    """One client. `bearer` is whether it sends bearer tokens itself; `note` explains limits.

    `snippets` may be empty: where a token is needed that the client cannot send.
    """

    name: str
    title: str
    bearer: bool
    note: str
    snippets: Callable[[str, str], tuple[Snippet, ...]]
    config: Config | None = None


def endpoint(url: str) -> str:
    """The address of an MCP endpoint, from itself or from that of a service.

    Where no scheme is given it is https, and http on this machine. Raises `InvalidRequest` for
    what is no http address, or holds what an address should not.
    """
    url = url.strip()
    if "://" not in url:
        url = f"http://{url}" if is_loopback(f"http://{url}") else f"https://{url}"
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or any(sign.isspace() or not sign.isprintable() for sign in url):
        raise InvalidRequest(
            f"{url!r} is no http address. Give that of the service, as https://rung.example.com."
        )
    if parts.username or parts.password:
        raise InvalidRequest("The address holds a credential. Give the token with --token-file.")
    if parts.query or parts.fragment:
        raise InvalidRequest("Give the address without what follows ? or #.")
    path = parts.path.rstrip("/")
    if not path.endswith(tuple(ENDPOINTS.values())):
        rest = next((end for end in ENDPOINTS if path.endswith(end)), "")
        path = path.removesuffix(rest) + ENDPOINTS[rest]
    return parts._replace(path=path).geturl()


def is_loopback(url: str) -> bool:
    """Whether what goes to an address stays on this machine."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return host in ("localhost", "::1") or host.startswith("127.")


def pretty(value: Any) -> str:
    """JSON as a person would lay it out."""
    return json.dumps(value, indent=2, ensure_ascii=False)
