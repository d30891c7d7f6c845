"""`rung demo`: a store to try things on, and a token that reads it."""

from pathlib import Path

import click

from service.cli.store import store_option, teaching
from service.demo.fill import fill, token_for
from service.upstreams.store.writer import open_writer

TOKEN_FILE = "demo-token"


@click.command()
@click.option("--debian", "with_debian", is_flag=True, help="Add Debian changelogs: real text.")
@store_option
def demo(store: Path, with_debian: bool) -> None:
    """Fill a store with an invented owner's records and print a token that reads them.

    A second run changes nothing and prints the same token, kept beside the store.
    """
    with teaching(), open_writer(store) as writer:
        connections = fill(writer, with_debian=with_debian)
        token = token_for(writer, connections, store.parent / TOKEN_FILE)
        marks = ", ".join("?" * len(connections))
        (records,) = writer.db.execute(
            "SELECT count(*) FROM record JOIN stream ON stream.id = record.stream"
            " JOIN connection ON connection.id = stream.connection"
            f" WHERE deleted = 0 AND connection_id IN ({marks})",
            connections,
        ).fetchone()
    click.echo(f"connections {len(connections)}\nrecords {records}\ntoken {token}")
