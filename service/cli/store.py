"""Commands of the owner: see what is in the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import orjson

from evidence.errors import EvidenceError
from evidence.limits import BUDGETS
from service.place import Place
from service.access.activity import Activity
from service.access.sidecar import Sidecar
from service.access.tokens import Now
from service.cli import output
from service.cli.source import store_option
from service.records.intake import Refused
from service.records.sqlite.failures import explain_failures
from service.records.opening import open_writer
from service.records.sqlite import backup
from service.records.sqlite.writer import explain_locks
from service.records.streams import manifests_of
from service.records.writing import Writing


@contextmanager
def teaching() -> Iterator[None]:
    """Prints what went wrong and what to do on stderr, and exits with 1."""
    try:
        with explain_failures():
            yield
    except EvidenceError as error:
        said = f"{error.message} {error.hint}" if error.hint else error.message
        raise click.ClickException(said) from error
    except Refused as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'A file'}: {error.strerror}.") from error


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--reindex", is_flag=True, help="Rebuild the full-text indexes first.")
@store_option
def stats(store: Place, as_json: bool, reindex: bool) -> None:
    """Count the connections, streams and records of the store.

    Any store of an older version is brought up to date. --reindex repairs a damaged index in a
    copy, which replaces the store at the end; it takes about as long as the imports did.
    """
    if reindex and isinstance(store, Path):
        with teaching():
            with existing(store):
                pass  # brings an older layout up to date
            backup.repair(store)
    with teaching(), existing(store) as writer:
        if reindex and not isinstance(store, Path):
            writer.rebuild()
            writer.finish()
        counts = writer.counts()
        plain = [
            f"{connection}/{manifest.name}"
            for connection in writer.connection_ids()
            for manifest in manifests_of(writer, connection)
            if not manifest.roles
        ]
    if as_json:
        click.echo(orjson.dumps({"streams": counts}).decode())
        return
    for count in counts:
        name = f"{count.connection_id}/{count.stream}"
        output.text(f"{name}: {count.records} records, {count.deleted} deleted")
    connections = len({count.connection_id for count in counts})
    records = sum(count.records for count in counts)
    click.echo(f"{connections} connections, {len(counts)} streams, {records} records")
    if plain:
        output.say(
            f"No field of {', '.join(plain[: BUDGETS.names_shown])} has a role: hits have no "
            "title and no time. Write the manifest with rung import --write-manifest FILE, add "
            "x_pdpp_role to its fields, and give it with --manifest FILE."
        )


def in_file(store: Place, instead: str) -> Path:
    """The store, which must be a file; `instead` is what to do with a database."""
    if isinstance(store, Path):
        return store
    raise click.ClickException(f"{store} is a database. {instead}")


@contextmanager
def existing(store: Place) -> Iterator[Writing]:
    """The store, which must be there."""
    with open_writer(required(store)) as writer, explain_locks(str(store)):
        yield writer


def clock(store: Place) -> Now:
    """The clock of the store: it never returns an earlier time than its servers have seen."""
    return Activity(Sidecar(store)).now


def required(store: Place) -> Place:
    """The place of a store, which must be there."""
    if store.exists():
        return store
    raise click.ClickException(f"There is no store at {store}. Fill one: rung import, rung demo.")
