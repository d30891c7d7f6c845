"""`rung demo`: a store to try things on, and a token that reads it."""

import sys
from pathlib import Path
from textwrap import indent

import click

from service.place import Place
from service.cli import serve
from service.cli.source import store_option
from service.cli.opening import DEMO_TOKEN
from service.cli.store import teaching
from service.clients.client import endpoint
from service.clients.table import RECOMMENDED, named
from service.demo.fill import fill, token_for
from service.demo.papers import write_once
from service.records.opening import open_writer

PAPERS_FOLDER = "demo-papers"
HOST = "127.0.0.1"
PASTED = ("curl", "claude-code")


@click.command()
@click.option(
    "--debian", "with_debian", is_flag=True, help="Add Debian changelogs, which are real text."
)
@click.option("--serve", "serving", is_flag=True, help="Print how to connect, then serve.")
@serve.port_option
@store_option
def demo(store: Place, with_debian: bool, serving: bool, port: int) -> None:
    """Fill a store with records of an invented owner and print a token that reads them.

    A second run changes nothing and prints the same token, which is kept next to the store.
    """
    with teaching():
        papers = write_once(store.parent / PAPERS_FOLDER)
    with teaching(), open_writer(store) as writer:
        connections = fill(writer, with_debian=with_debian)
        token = token_for(writer, connections, store.parent / DEMO_TOKEN)
        counts = writer.counts()
        records = sum(each.records for each in counts if each.connection_id in connections)
    if not serving:
        click.echo(f"connections {len(connections)}\nrecords {records}\ntoken {token}")
        return
    held = f"{len(connections)} connections and {records} records"
    said = _how_to_connect(f"http://{HOST}:{port}", token, store.parent / DEMO_TOKEN, held)
    more = {"RUNG_SIGN_IN": "on"}
    serve.run(store, papers, host=HOST, port=port, workers=1, say=said, more=more)


def _how_to_connect(base: str, token: str, kept: Path, held: str) -> str:
    """The URLs to open and the commands to paste."""
    url = endpoint(base)
    pasted = "\n".join(
        f"\n{client.title}:\n{indent(snippet.text, '  ')}"
        for client in (RECOMMENDED, *map(named, PASTED))
        for snippet in client.snippets(url, token)
    )
    return f"""
A demo owner with {held}.

  connect  {base}/connect
  try      {base}/try
  MCP      {url}
  REST     {base}/v1/search?q=lantern
  owner    {base}/owner (sign in: rung owner link --url {base})
  papers   {base}/mcp/papers and {base}/papers/v1/search?q=tides (no token)
{pasted}

Other clients (rung connect lists them):
  rung connect {base} --client cursor --token-file {kept}

A second shell, in this folder:
  export PATH="{Path(sys.executable).parent}:$PATH" RUNG_URL={base} RUNG_TOKEN="$(cat {kept})"
  rung search quorum elm

Stop with Ctrl-C.
"""
