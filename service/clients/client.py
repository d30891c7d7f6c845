"""Types that describe a client: its snippets, its configuration file and where that file is."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """One file. `linux` is the path on all other systems.

    `~` is the home folder, `%APPDATA%` that of Windows. If the environment sets `variable`, it
    names the folder instead.
    """

    linux: str
    macos: str = ""
    windows: str = ""
    variable: str = ""

    def path(self, system: str, home: Path, environment: Mapping[str, str]) -> Path:
        """The file on a system, named as `sys.platform` does."""
        own = {"darwin": self.macos, "win32": self.windows}.get(system)
        spelled = (own or self.linux).replace("\\", "/")
        chosen = environment.get(self.variable, "") if self.variable else ""
        if chosen:
            return Path(chosen).expanduser() / spelled.rpartition("/")[2]
        if spelled.startswith("%APPDATA%/"):
            roaming = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
            return roaming / spelled.removeprefix("%APPDATA%/")
        return home / spelled.removeprefix("~/")

    @property
    def shown(self) -> str:
        """The paths for all systems, as shown to a person."""
        if not (self.macos or self.windows):
            return self.linux
        return f"{self.linux} (Linux), {self.macos} (macOS), {self.windows} (Windows)"


#: The environment variable that clients read the token from, where they can.
TOKEN_VARIABLE = "RUNG_TOKEN"

#: Printed in place of a token that is not shown.
PLACEHOLDER = "rung_…"

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text to paste. `language` is sh, json, toml, yaml or text; `place` a file, "" for a shell."""

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
    place: Place
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
    by OAuth, and `login` is the command for that, if it has one. `note` explains limits.

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
