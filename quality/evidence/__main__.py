"""`python -m quality.evidence`: runs the evidence benchmark against any MCP server.

`corpus` writes the records and the tasks, `run` measures a server that has them, and `compare` does
both for Rung and for a plain server over FTS5.
"""

import importlib
import json
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import click

from quality.evidence import tasks
from quality.evidence.agent import Reader
from quality.evidence.clients import Client, Http, Stdio
from quality.evidence.corpus import ACCOUNTS
from quality.evidence.measure import Result, measure, write
from quality.evidence.readers import READERS, PlainReader, RungReader
from tests.helpers.server import UNLIMITED

SEED = 6
FOLDER = click.Path(file_okay=False, path_type=Path)
only_option = click.option(
    "--only", multiple=True, metavar="PREFIX", help="Run only tasks whose id begins like this."
)


@click.group()
def main() -> None:
    """What proven answers cost an agent that reads text, on any MCP server."""


@main.command()
@click.argument("folder", type=FOLDER)
@click.option("--seed", default=SEED, show_default=True)
@click.option("--scale", default=1.0, help="Fewer and shorter records, such as 0.2.")
def corpus(folder: Path, seed: int, scale: float) -> None:
    """Write NDJSON for each account, and tasks.json, to FOLDER."""
    try:
        made = tasks.make(seed, scale)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, *made)


@main.command()
@click.argument("folder", type=FOLDER)
@click.option("--url", help="The address of the server over HTTP.")
@click.option("--token-file", type=click.Path(exists=True, path_type=Path), help="Its token.")
@click.option("--stdio", metavar="COMMAND", help="A command that serves over stdio instead.")
@click.option(
    "--reader",
    default="plain",
    show_default=True,
    help="How its pages are read: rung, plain, or MODULE:CLASS for a Reader of your own.",
)
@only_option
def run(
    folder: Path,
    url: str | None,
    token_file: Path | None,
    stdio: str | None,
    reader: str,
    only: tuple[str, ...],
) -> None:
    """Measure a server that has the records in FOLDER. Prints JSON."""
    if (url is None) == (stdio is None):
        raise click.UsageError("Give either --url or --stdio.")
    token = token_file.read_text(encoding="utf-8").strip() if token_file else None
    try:
        client: Client = Http(url, token) if url else Stdio(shlex.split(stdio or ""), {})
        with client:
            click.echo(json.dumps(measure(folder, client, _reader(reader), only).row))
    except (RuntimeError, OSError) as error:
        raise click.ClickException(f"The server cannot be measured. {error}") from None


@main.command()
@only_option
def compare(only: tuple[str, ...]) -> None:
    """Measure Rung and the plain server over FTS5. Prints JSON, a line for each."""
    for result in compared(only):
        click.echo(json.dumps(result.row))


def compared(only: tuple[str, ...] = ()) -> list[Result]:
    """The results of Rung and of the plain server, both over stdio."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder, *tasks.make(SEED))
        return [measure_rung(folder, only), measure_plain(folder, only)]


def measure_rung(folder: Path, only: tuple[str, ...] = ()) -> Result:
    """The result of Rung over the corpus in a folder."""
    token = fill(folder)
    command = [sys.executable, "-m", "service", "stdio", "--store", str(folder / "store.db")]
    with Stdio(command, {"RUNG_TOKEN": token, **UNLIMITED}) as client:
        return measure(folder, client, RungReader(), only)


def measure_plain(folder: Path, only: tuple[str, ...] = ()) -> Result:
    """The result of the plain server over the corpus in a folder."""
    with Stdio([sys.executable, "-m", "quality.evidence.fts5", str(folder)], {}) as client:
        return measure(folder, client, PlainReader(), only)


def fill(folder: Path) -> str:
    """Imports the records into a store in the folder; returns a token for all of them."""
    store = ("--store", str(folder / "store.db"))
    for account in ACCOUNTS:
        path = str(folder / f"{account.connection}.ndjson")
        named = ("--connection", account.connection, "--stream", account.stream)
        _rung("import", path, *named, "--label", account.label, *store)
    token: str = json.loads(_rung("grant", "create", "--json", *store))["token"]
    return token


def _rung(*words: str) -> str:
    command = [sys.executable, "-m", "service", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _reader(name: str) -> Reader:
    if name in READERS:
        return cast(Reader, READERS[name]())
    module, _, attribute = name.partition(":")
    return cast(Reader, getattr(importlib.import_module(module), attribute)())


if __name__ == "__main__":
    main()
