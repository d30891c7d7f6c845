"""`rung demo`: a store to try things on, and a token that reads it."""

import json
from pathlib import Path

import click

from service.cli import serve
from service.cli.store import store_option, teaching
from service.demo.fill import fill, token_for
from service.demo.papers import write_once
from service.upstreams.store.writer import Writer, open_writer

TOKEN_FILE = "demo-token"
PAPERS_FOLDER = "demo-papers"
HOST = "127.0.0.1"


@click.command()
@click.option("--debian", "with_debian", is_flag=True, help="Add Debian changelogs: real text.")
@click.option("--serve", "serving", is_flag=True, help="Print how to connect, then serve.")
@click.option("--port", type=int, default=8000, envvar="PORT", show_default=True)
@store_option
def demo(store: Path, with_debian: bool, serving: bool, port: int) -> None:
    """Fill a store with an invented owner's records and print a token that reads them.

    A second run changes nothing and prints the same token, kept beside the store.
    """
    with teaching():
        papers = write_once(store.parent / PAPERS_FOLDER)
    with teaching(), open_writer(store) as writer:
        connections = fill(writer, with_debian=with_debian)
        token = token_for(writer, connections, store.parent / TOKEN_FILE)
        records = _count(writer, connections)
    if not serving:
        click.echo(f"connections {len(connections)}\nrecords {records}\ntoken {token}")
        return
    said = _how_to_connect(f"http://{HOST}:{port}", token, len(connections), records)
    serve.run(store, papers, host=HOST, port=port, workers=1, say=said)


def _count(writer: Writer, connections: list[str]) -> int:
    """How many live records the demo's connections hold."""
    marks = ", ".join("?" * len(connections))
    (records,) = writer.db.execute(
        "SELECT count(*) FROM record JOIN stream ON stream.id = record.stream"
        " JOIN connection ON connection.id = stream.connection"
        f" WHERE deleted = 0 AND connection_id IN ({marks})",
        connections,
    ).fetchone()
    return int(records)


def _how_to_connect(base: str, token: str, connections: int, records: int) -> str:
    """What a person pastes into a shell or a client."""
    params = {"name": "search", "arguments": {"query": "lantern", "limit": 3}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Authorization": f"Bearer {token}"}
    client = {"mcpServers": {"rung": {"url": f"{base}/mcp", "headers": headers}}}
    return f"""
A demo owner with {connections} connections and {records} records.

  MCP      {base}/mcp
  REST     {base}/v1/search?q=lantern
  header   Authorization: Bearer {token}
  papers   {base}/mcp/papers and {base}/papers/v1/search?q=tides (no token)

Try it:
  curl -s {base}/mcp -H 'Content-Type: application/json' \\
    -H 'Authorization: Bearer {token}' \\
    -d '{json.dumps(call)}'

Claude Code:
  claude mcp add --transport http rung {base}/mcp --header 'Authorization: Bearer {token}'

Cursor, VS Code and others (JSON):
  {json.dumps(client)}

Stop with Ctrl-C.
"""
