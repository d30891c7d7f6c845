"""`rung demo`: creates a store for trying out Rung, and a token for the store."""

import sys
from importlib.resources import files
from pathlib import Path
from textwrap import indent

import click

from service.place import Place
from service.cli import serve
from service.cli.source import store_option
from service.cli.opening import DEMO_TOKEN
from service.cli.reading import search
from service.cli.store import teaching
from service.addresses import endpoint
from service.clients.table import RECOMMENDED, client_of
from service.demo.fill import fill, questions, token_for
from service.demo.papers import write
from service.records.opening import open_writer

PAPERS_FOLDER = "demo-papers"
HOST = "127.0.0.1"
TITLE = "A year of Ada Brandt"
QUESTIONS = 10
PASTED = ("curl", "claude-code")
WELCOME = files("service.demo").joinpath("welcome.txt").read_text(encoding="utf-8")


@click.group(invoke_without_command=True)
@click.option(
    "--serve", "serving", is_flag=True, help="Print how to connect, then serve the store."
)
@serve.port_option
@store_option
@click.pass_context
def demo(context: click.Context, store: Place, serving: bool, port: int) -> None:
    """Fill a store with a year of an invented person's records, and print a token for the store.

    The token is saved next to the store. If you run the command again, it changes no records and
    prints the same token, unless the token was revoked or a newer version of Rung has other demo
    data.
    """
    if context.invoked_subcommand:
        return
    with teaching():
        papers = write(store.parent / PAPERS_FOLDER)
    with teaching(), open_writer(store) as writer:
        connections = fill(writer)
        token = token_for(writer, connections, store.parent / DEMO_TOKEN)
        counts = writer.counts()
        records = sum(count.records for count in counts if count.connection_id in connections)
    if not serving:
        click.echo(f"connections {len(connections)}\nrecords {records}\ntoken {token}")
        return
    contents = f"{len(connections)} connections and {records} records"
    said = _how_to_connect(f"http://{HOST}:{port}", token, store.parent / DEMO_TOKEN, contents)
    defaults = {"RUNG_SIGN_IN": "on", "RUNG_TITLE": TITLE, "RUNG_SHOW_CONTENTS": "on"}
    serve.run(store, papers, host=HOST, port=port, workers=1, say=said, defaults=defaults)


@demo.command()
@click.argument("words", nargs=-1, metavar="[WORDS]...")
@store_option
@click.pass_context
def ask(context: click.Context, words: tuple[str, ...], store: Place) -> None:
    """Ask the demo a question and print the best match.

    Without WORDS, the command asks ten questions that the demo can answer.
    """
    options = ["--limit", "1", "--store", str(store)]
    options += ["--token-file", str(store.parent / DEMO_TOKEN)]
    texts = [" ".join(words)] if words else [entry.question for entry in questions()[:QUESTIONS]]
    for question in texts:
        click.secho(f"\n{question}", bold=True)
        with search.make_context("search", [*options, "--", question], parent=context) as child:
            search.invoke(child)


def _how_to_connect(base: str, token: str, token_file: Path, contents: str) -> str:
    """The URLs to open and the commands to paste."""
    url = endpoint(base)
    pasted = "\n".join(
        f"\n{client.title}:\n{indent(snippet.text, '  ')}"
        for client in (RECOMMENDED, *map(client_of, PASTED))
        for snippet in client.snippets(url, token)
    )
    bin = Path(sys.executable).parent
    return WELCOME.format(
        base=base, url=url, pasted=pasted, kept=token_file, held=contents, bin=bin
    )
