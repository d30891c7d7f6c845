"""The supported clients, from `clients.toml`, and how each configures a server."""

import json
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from service.clients import toml
from service.clients.client import (
    PLACEHOLDER,
    TOKEN_VARIABLE,
    Client,
    Config,
    Credential,
    Entry,
    Launcher,
    Place,
    Snippet,
    is_loopback,
    pretty,
)

NAME = "rung"
BRIDGE_VARIABLE = "RUNG_AUTHORIZATION"
SCOPES: tuple[str, ...] = ("user", "project")
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def named(name: str) -> Client:
    """The client of that name, which must be in the table."""
    return next(client for client in CLIENTS if client.name == name)


def bearer(token: str) -> str:
    return f"Bearer {token}"


def _headers(credential: Credential) -> Entry:
    return {"headers": {"Authorization": bearer(credential.text)}} if credential.text else {}


def _address(url: str, credential: Credential) -> Entry:
    return {"url": url, **_headers(credential)}


def _typed_address(url: str, credential: Credential) -> Entry:
    return {"type": "http", **_address(url, credential)}


def _gemini_address(url: str, credential: Credential) -> Entry:
    return {"httpUrl": url, **_headers(credential)}


def _codex_address(url: str, credential: Credential) -> Entry:
    if not credential.text:
        return {"url": url}
    if not credential.inline:
        return {"url": url, "bearer_token_env_var": credential.text}
    return {"url": url, "http_headers": {"Authorization": bearer(credential.text)}}


def _bridge(url: str, credential: Credential) -> Entry:
    """The bridge as a local command: the bearer in a variable, as spaces in arguments get lost."""
    entry: Entry = {"command": "npx", "args": ["-y", *_bridge_arguments(url)]}
    if credential.text:
        entry["args"] += ["--header", f"Authorization:${{{BRIDGE_VARIABLE}}}"]
        entry["env"] = {BRIDGE_VARIABLE: bearer(credential.text)}
    return entry


def _bridge_arguments(url: str) -> list[str]:
    plain = ["--allow-http"] if url.startswith("http:") and not is_loopback(url) else []
    return ["mcp-remote", url, "--transport", "http-only", *plain]


def _command(launcher: Launcher, credential: Credential) -> Entry:
    entry: Entry = {"command": launcher.command, "args": list(launcher.arguments)}
    return {**entry, "env": {TOKEN_VARIABLE: credential.text}} if credential.text else entry


def _typed_command(launcher: Launcher, credential: Credential) -> Entry:
    return {"type": "stdio", **_command(launcher, credential)}


def _codex_command(launcher: Launcher, credential: Credential) -> Entry:
    entry: Entry = {"command": launcher.command, "args": list(launcher.arguments)}
    if credential.text and not credential.inline:
        return {**entry, "env_vars": [credential.text]}
    return {**entry, "env": {TOKEN_VARIABLE: credential.text}} if credential.text else entry


#: The entry of a server: over HTTP, and as a local command.
STYLES = {
    "bridge": (_bridge, _command),
    "typed": (_typed_address, _typed_command),
    "plain": (_address, _command),
    "gemini": (_gemini_address, _command),
    "codex": (_codex_address, _codex_command),
}


def prompt(name: str) -> Entry:
    """The VS Code prompt for the token of one server."""
    return {
        "type": "promptString",
        "id": f"{name}-token",
        "description": f"Token of {name}",
        "password": True,
    }


def _recommended(url: str, token: str) -> tuple[Snippet, ...]:
    lines = [f"URL     {url}"]
    if token:
        lines.append(f"Header  Authorization: {bearer(token)}")
    return (Snippet("Streamable HTTP", "text", "\n".join(lines)),)


def _written(config: Config, scope: str = "user") -> Callable[[str, str], tuple[Snippet, ...]]:
    """The file of a client with only this server."""

    def snippets(url: str, token: str) -> tuple[Snippet, ...]:
        credential = config.credential(token, NAME)
        entry = config.http(url, credential)
        if config.language == "toml":
            text = toml.block(config.table, NAME, entry).rstrip()
        else:
            asked = {"inputs": [prompt(NAME)]} if token and config.prompts else {}
            text = pretty({**asked, config.table: {NAME: entry}})
        file = Snippet("Configuration", config.language, text, config.places[scope].shown)
        if credential.inline or not token or config.prompts:
            return (file,)
        return (_exported(token), file)

    return snippets


def _exported(token: str) -> Snippet:
    return Snippet("Environment", "sh", f"export {TOKEN_VARIABLE}={shlex.quote(token)}")


def _claude_code(url: str, token: str) -> tuple[Snippet, ...]:
    command = ["claude", "mcp", "add", "--transport", "http", NAME, url]
    return (_shell("Command", command, token),)


def _mcp_remote(url: str, token: str) -> tuple[Snippet, ...]:
    return (_shell("Command", ["npx", "-y", *_bridge_arguments(url)], token),)


def _curl(url: str, token: str) -> tuple[Snippet, ...]:
    command = ["curl", "-s", url, "-H", "Content-Type: application/json"]
    return (_shell("Command", command, token, "-H", "-d", json.dumps(LIST_TOOLS)),)


def _shell(
    label: str, command: list[str], token: str, header: str = "--header", *more: str
) -> Snippet:
    """A command; a token that is not shown is taken from the environment when it runs."""
    words = [shlex.quote(word) for word in command]
    if token == PLACEHOLDER:
        words += [header, f'"Authorization: {bearer("$" + TOKEN_VARIABLE)}"']
    elif token:
        words += [header, shlex.quote(f"Authorization: {bearer(token)}")]
    return Snippet(label, "sh", " ".join([*words, *map(shlex.quote, more)]))


def _chatgpt(url: str, token: str) -> tuple[Snippet, ...]:
    return () if token else (Snippet("Server URL, authentication: none", "text", url),)


def _goose(url: str, token: str) -> tuple[Snippet, ...]:
    lines = [
        "extensions:",
        f"  {NAME}:",
        f"    name: {NAME}",
        "    type: streamable_http",
        f"    uri: {json.dumps(url)}",
        "    enabled: true",
        "    timeout: 300",
    ]
    if token:
        lines += [
            f"    env_keys: [{TOKEN_VARIABLE}]",
            "    headers:",
            f'      Authorization: "Bearer ${{{TOKEN_VARIABLE}}}"',
        ]
    place = "~/.config/goose/config.yaml"
    file = Snippet("Configuration", "yaml", "\n".join(lines), place)
    return (_exported(token), file) if token else (file,)


#: The text to paste for clients that do not show their file.
SNIPPETS: dict[str, Callable[[str, str], tuple[Snippet, ...]]] = {
    "any": _recommended,
    "claude-code": _claude_code,
    "chatgpt": _chatgpt,
    "goose": _goose,
    "mcp-remote": _mcp_remote,
    "curl": _curl,
}


def _client(*, name: str, file: dict[str, Any] | None = None, **properties: Any) -> Client:
    """One row of `clients.toml`."""
    if file is None:
        return Client(name, snippets=SNIPPETS[name], **properties)
    http, stdio = STYLES[file.pop("style")]
    shown = file.pop("shown", "user")
    places = {scope: Place(**file.pop(scope)) for scope in SCOPES if scope in file}
    config = Config(**{"language": "json", **file}, places=places, http=http, stdio=stdio)
    snippets = SNIPPETS.get(name) or _written(config, shown)
    return Client(name, snippets=snippets, config=config, **properties)


RECOMMENDED, *CLIENTS = (
    _client(**row)
    for row in tomllib.loads(Path(__file__).with_name("clients.toml").read_text(encoding="utf-8"))[
        "clients"
    ]
)
