"""Edits a client's configuration file, or shows the change."""

import difflib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from evidence.pointer import strings
from service.clients.client import TOKEN_VARIABLE, Client, Config
from service.clients.servers import Unreadable, server
from service.clients.table import prompt
from service.clients.writing import Changed, Held, alone

TRIES = 3
BOM = "\ufeff"
CONTEXT_LINES = 1  # lines around an entry belong to other servers
HIDDEN = "…"

#: Quoted text; with the second group it is a key, which is shown.
QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*')(\s*[:=])?""")
#: Hidden parts of our own values; references to a token are shown.
SECRETS = (
    re.compile(r"(Bearer\s+)(?!\$)[^\"'\s]+"),
    re.compile(rf"({TOKEN_VARIABLE}[\"']?\s*[:=]\s*[\"'])(?!\$)[^\"']+"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """The file to edit, its client, and the name of the server in it."""

    client: Client
    config: Config
    path: Path
    name: str


def rewrite(
    target: Target,
    change: Callable[[str, Held], str | None],
    *,
    private: bool = False,
    dry_run: bool = False,
) -> bool:
    """True if the file was written; a dry run shows the difference instead.

    `change` gives the new text, or None for no file. It is called again if another process writes
    the file meanwhile. A `private` file is readable by its owner only.
    """
    with alone():
        for _ in range(TRIES):
            with suppress(Changed):
                return _rewritten(target, change, private=private, dry_run=dry_run)
    raise click.ClickException(
        f"{target.path} keeps changing. Close {target.client.title} and try again."
    )


def _rewritten(
    target: Target,
    change: Callable[[str, Held], str | None],
    *,
    private: bool,
    dry_run: bool,
) -> bool:
    """The same once; raises `Changed`."""
    held = Held.of(target.path)
    text, mark = split(held.content or b"", target.path)
    try:
        new = change(text, held)
    except Unreadable as error:
        raise click.ClickException(f"{target.path}: {error.message}") from error
    if new == text:
        click.echo(f"{target.path} is up to date; nothing changed.")
        return False
    if dry_run:
        click.echo(_difference(target, text, new or ""), nl=False)
        return False
    content = None if new is None else (mark + new).encode()
    backup = held.replace(content, datetime.now(UTC), private=private)
    click.echo(f"{target.path} {'was written' if content is not None else 'was removed'}.")
    if backup:
        click.echo(f"The previous version is in {backup}.")
    return True


def split(content: bytes, path: Path) -> tuple[str, str]:
    """The text of a file, and the mark before it, which most files do not have."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} is not UTF-8 text. Nothing was written.") from None
    return (text[1:], BOM) if text.startswith(BOM) else (text, "")


def _difference(target: Target, old: str, new: str) -> str:
    """A unified diff that shows no secret and does not steer the terminal.

    Shows our own values only: other values on the same line may be secrets.
    """
    after, before = (server(target.config, text, target.name) for text in (new, old))
    ours = {*strings(after or _without_tables(before)), *strings(prompt(target.name))}
    first, second, *lines = difflib.unified_diff(
        old.splitlines(),
        new.splitlines(),
        str(target.path),
        str(target.path),
        n=CONTEXT_LINES,
        lineterm="",
    )
    shown = [first, second, *(_masked(line, ours) for line in lines)]
    return "".join(f"{_plain(line)}\n" for line in shown)


def _without_tables(entry: Any) -> Any:
    """An entry without its headers and environment, which may have secrets."""
    if not isinstance(entry, dict):
        return None
    return {key: value for key, value in entry.items() if not isinstance(value, dict)}


def _masked(line: str, ours: set[str]) -> str:
    def shown(found: re.Match[str]) -> str:
        text, sign = found.groups()
        try:
            value = json.loads(text)
        except ValueError:
            value = text[1:-1]
        return found[0] if sign or value in ours else text[0] + HIDDEN + text[0]

    line = QUOTED.sub(shown, line)
    for pattern in SECRETS:
        line = pattern.sub(rf"\1{HIDDEN}", line)
    return line


def _plain(line: str) -> str:
    return "".join(one if one.isprintable() or one == "\t" else " " for one in line)
