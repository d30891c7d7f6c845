"""The supported clients, from `clients.toml`, and how each is configured to use a server."""

import base64
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from service.addresses import is_loopback
from service.clients import toml
from service.credentials import TOKEN_VARIABLE


@dataclass(frozen=True, slots=True)
class FileLocation:
    """One file. `linux` is the path on all other systems.

    `~` is the home folder, `%APPDATA%` the one of Windows. If the environment variable `variable`
    is set, it names the folder instead.
    """

    linux: str
    macos: str = ""
    windows: str = ""
    variable: str = ""

    def path(self, system: str, home: Path, environment: Mapping[str, str]) -> Path:
        """The file on a system, named as `sys.platform` does."""
        own = {"darwin": self.macos, "win32": self.windows}.get(system)
        template = (own or self.linux).replace("\\", "/")
        chosen = environment.get(self.variable, "") if self.variable else ""
        if chosen:
            return Path(chosen).expanduser() / template.rpartition("/")[2]
        if template.startswith("%APPDATA%/"):
            roaming = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
            return roaming / template.removeprefix("%APPDATA%/")
        return home / template.removeprefix("~/")

    @property
    def description(self) -> str:
        """The paths for all systems, as shown to a person."""
        if not (self.macos or self.windows):
            return self.linux
        return f"{self.linux} (Linux), {self.macos} (macOS), {self.windows} (Windows)"


#: Printed in place of a token that is not shown.
PLACEHOLDER = "rung_…"

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text to paste.

    `language` is sh, json, toml, yaml or text; `place` is a file, or "" for a shell.
    """

    label: str
    language: str
    text: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Credential:
    """The bearer of an entry as written to the file: the token if `inline`, else a reference.

    An empty `text` means that no bearer is sent.
    """

    text: str
    inline: bool


@dataclass(frozen=True, slots=True)
class Config:
    """The file a client reads its servers from.

    `table` is the key that its servers are under. `reference` refers to a token outside the file,
    with `{name}` for the name of the server; it is "" if the client does not support references.
    `http` and `stdio` return the entry of one server, from its URL or from the words of its
    command. With `prompts`, the reference is to an input
    that the client asks for, and the file declares that input too.
    """

    language: str
    table: str
    location: FileLocation
    http: Callable[[str, Credential], Entry]
    stdio: Callable[[Sequence[str], Credential], Entry]
    reference: str = ""
    prompts: bool = False

    def credential(self, token: str, name: str, *, inline: bool = False) -> Credential:
        """The credential as written to the file: a reference if supported, else the token."""
        if token and self.reference and not inline:
            return Credential(self.reference.replace("{name}", name), inline=False)
        return Credential(token, inline=bool(token))


@dataclass(frozen=True, slots=True)
class Client:
    """One client. `bearer` is True if it sends bearer tokens itself, `signs_in` if it can get one
    by OAuth, and `login` is its command for that, if any. `note` explains limits.

    `link` is the form of a link that adds a server, with {json} or {base64} for the server.
    `snippets` returns nothing if a token is needed that the client cannot send.
    """

    name: str
    title: str
    bearer: bool
    note: str
    snippets: Callable[[str, str], tuple[Snippet, ...]]
    config: Config | None = None
    link: str = ""
    signs_in: bool = True
    login: str = ""


def pretty(value: Any) -> str:
    """JSON with an indent of two spaces."""
    return json.dumps(value, indent=2, ensure_ascii=False)


NAME = "rung"
BRIDGE_VARIABLE = "RUNG_AUTHORIZATION"
#: Writes a value in each language.
QUOTED: dict[str, Callable[[str], str]] = {"sh": shlex.quote, "yaml": json.dumps}

_VARIABLE = re.compile(r"\{(\w+)\}")


def client_of(name: str) -> Client:
    """The client of that name, which must be in the table."""
    return next(client for client in CLIENTS if client.name == name)


def bearer(token: str) -> str:
    return f"Bearer {token}"


def _headers(credential: Credential) -> Entry:
    return {"headers": {"Authorization": bearer(credential.text)}} if credential.text else {}


def _address(key: str, **fixed: str) -> Callable[[str, Credential], Entry]:
    """The entry of a server, with its URL under this key."""
    return lambda url, credential: {**fixed, key: url, **_headers(credential)}


def _codex_address(url: str, credential: Credential) -> Entry:
    if not credential.text:
        return {"url": url}
    if not credential.inline:
        return {"url": url, "bearer_token_env_var": credential.text}
    return {"url": url, "http_headers": {"Authorization": bearer(credential.text)}}


def _bridge(url: str, credential: Credential) -> Entry:
    """The bridge as a local command: the bearer in a variable, as spaces in arguments get lost."""
    arguments = ["-y", "mcp-remote", url, "--transport", "http-only", *_plain(url)]
    if not credential.text:
        return {"command": "npx", "args": arguments}
    arguments += ["--header", f"Authorization:${{{BRIDGE_VARIABLE}}}"]
    variable = {BRIDGE_VARIABLE: bearer(credential.text)}
    return {"command": "npx", "args": arguments, "env": variable}


def _plain(url: str) -> list[str]:
    """The option that the bridge needs for a URL without TLS on another machine."""
    return ["--allow-http"] if url.startswith("http:") and not is_loopback(url) else []


def _command(words: Sequence[str], credential: Credential) -> Entry:
    variable = {"env": {TOKEN_VARIABLE: credential.text}} if credential.text else {}
    return {"command": words[0], "args": list(words[1:]), **variable}


def _stdio_command(words: Sequence[str], credential: Credential) -> Entry:
    return {"type": "stdio", **_command(words, credential)}


def _codex_command(words: Sequence[str], credential: Credential) -> Entry:
    entry = _command(words, credential)
    if credential.text and not credential.inline:
        del entry["env"]
        entry["env_vars"] = [credential.text]
    return entry


#: The entry of a server: over HTTP, and as a local command.
STYLES = {
    "bridge": (_bridge, _command),
    "typed": (_address("url", type="http"), _stdio_command),
    "plain": (_address("url"), _command),
    "gemini": (_address("httpUrl"), _command),
    "windsurf": (_address("serverUrl"), _command),
    "cline": (_address("url", type="streamableHttp"), _command),
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


def _pasted(
    text: str, more: str = "", *, tokenless: bool = False, exported: bool = False, **about: str
) -> Callable[[str, str], tuple[Snippet, ...]]:
    """A text to paste, with `more` for a token. A `tokenless` one cannot have a token.

    A shell takes a token that is not shown from its environment when the command runs.
    """

    def snippets(url: str, token: str) -> tuple[Snippet, ...]:
        if token and tokenless:
            return ()
        quoted = QUOTED.get(about["language"], str)
        header = quoted(f"Authorization: {bearer(token)}")
        if token == PLACEHOLDER:
            header = f'"Authorization: {bearer("$" + TOKEN_VARIABLE)}"'
        values = {"url": quoted(url), "token": token, "header": header}
        values["plain"] = "".join(f" {word}" for word in _plain(url))
        filled = text.replace("{more}", more if token else "").rstrip("\n")
        filled = _VARIABLE.sub(lambda match: values.get(match[1], match[0]), filled)
        file = Snippet(text=filled, **about)
        return (_exported(token), file) if exported and token else (file,)

    return snippets


def in_file(config: Config, name: str, entry: Entry, *, asks: bool) -> str:
    """A file with only this server; `asks` if the file does not contain the token."""
    if config.language == "toml":
        return toml.block(config.table, name, entry).rstrip()
    inputs = {"inputs": [prompt(name)]} if asks and config.prompts else {}
    return pretty({**inputs, config.table: {name: entry}})


def _written(config: Config) -> Callable[[str, str], tuple[Snippet, ...]]:
    """The file of a client with only this server."""

    def snippets(url: str, token: str) -> tuple[Snippet, ...]:
        credential = config.credential(token, NAME)
        entry = config.http(url, credential)
        text = in_file(config, NAME, entry, asks=bool(token))
        file = Snippet("Configuration", config.language, text, config.location.description)
        exported = token and not credential.inline and not config.prompts
        return (_exported(token), file) if exported else (file,)

    return snippets


def install_link(client: Client, url: str, token: str) -> str:
    """The link that makes a client add the server and ask its user first; "" if it has none.

    The link does not contain the token: the client reads it from its environment, or asks for it.
    """
    if not client.link or client.config is None:
        return ""
    entry = client.config.http(url, client.config.credential(token, NAME))
    inputs = {"inputs": [prompt(NAME)]} if token and client.config.prompts else {}
    encoded = base64.b64encode(json.dumps(entry).encode()).decode()
    whole = json.dumps({"name": NAME, **entry, **inputs})
    return client.link.format(base64=quote(encoded, safe=""), json=quote(whole, safe=""))


def _exported(token: str) -> Snippet:
    return Snippet("Environment", "sh", f"export {TOKEN_VARIABLE}={shlex.quote(token)}")


def _client(
    *, file: dict[str, Any] | None = None, paste: dict[str, Any] | None = None, **properties: Any
) -> Client:
    """One row of `clients.toml`."""
    if file is None:
        return Client(snippets=_pasted(**paste or {}), **properties)
    http, stdio = STYLES[file.pop("style")]
    location = FileLocation(**file.pop("user"))
    config = Config(**{"language": "json", **file}, location=location, http=http, stdio=stdio)
    snippets = _pasted(**paste) if paste else _written(config)
    return Client(snippets=snippets, config=config, **properties)


_TABLE = Path(__file__).with_name("clients.toml").read_text(encoding="utf-8")
RECOMMENDED, *CLIENTS = (_client(**row) for row in tomllib.loads(_TABLE)["clients"])
