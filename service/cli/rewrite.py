"""Edits a client's configuration file, or shows what it would write."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from service.clients.client import Client, Config
from service.clients.servers import Unreadable
from service.clients.writing import Changed, Held, alone

TRIES = 3
BOM = "\ufeff"


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
    shown: str | None = None,
) -> bool:
    """True if the file was written; with `shown`, a dry run, that is printed instead.

    `change` gives the new text, or None for no file. It is called again if another process writes
    the file meanwhile. A `private` file is readable by its owner only.
    """
    with alone():
        for _ in range(TRIES):
            held = Held.of(target.path)
            text, mark = split(held.content or b"", target.path)
            try:
                new = change(text, held)
            except Unreadable as error:
                raise click.ClickException(f"{target.path}: {error.message}") from error
            if new == text:
                click.echo(f"{target.path} is up to date; nothing changed.")
                return False
            if shown is not None:
                click.echo(f"Nothing was written. In {target.path}:\n{shown}")
                return False
            content = None if new is None else (mark + new).encode()
            with suppress(Changed):
                backup = held.replace(content, datetime.now(UTC), private=private)
                done = "was written" if content is not None else "was removed"
                click.echo(f"{target.path} {done}.")
                if backup:
                    click.echo(f"The previous version is in {backup}.")
                return True
    raise click.ClickException(
        f"{target.path} keeps changing. Close {target.client.title} and try again."
    )


def split(content: bytes, path: Path) -> tuple[str, str]:
    """The text of a file, and the mark before it, which most files do not have."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} is not UTF-8 text. Nothing was written.") from None
    return (text[1:], BOM) if text.startswith(BOM) else (text, "")
