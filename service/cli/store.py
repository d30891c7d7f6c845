"""Owner commands: show the store's contents and readers, and sign in to the owner pages."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from threading import Event

import click
import orjson

from evidence.errors import EvidenceError
from evidence.limits import BUDGETS
from service import settings
from service.place import Place
from service.access.activity import KEPT_DAYS, Activity
from service.access.entries import Entries
from service.access.owner import LINK_SECONDS, Owner
from service.access.registry import Grant, Registry
from service.cli import output
from service.cli.source import store_option
from evidence.names import Refused
from service.records.freshness import Freshness, all_sources
from service.records.opening import open_writer
from service.records.sidecar import open_sidecar
from service.records.writing import Writing


@contextmanager
def teaching() -> Iterator[None]:
    """Prints errors and their fixes to stderr, and exits with 1."""
    try:
        yield
    except EvidenceError as error:
        raise click.ClickException(error.text) from error
    except (Refused, settings.SettingsError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'A file'}: {error.strerror}.") from error


def stop_on_signals() -> Event:
    """An event that is set when the process is interrupted or told to end."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def stats(store: Place, as_json: bool) -> None:
    """Count the connections, streams and records of the store.

    If the store has an old schema version, the command upgrades the store.
    """
    with teaching(), existing(store) as writer:
        counts = writer.counts()
        plain = [
            f"{connection}/{manifest.name}"
            for connection in writer.connection_ids()
            for manifest in writer.manifests(connection)
            if not manifest.roles
        ]
        vectors = [(model, *writer.vectors().progress(id)) for id, model in writer.vectors().sets()]
        sources, now = source_states(store)
    if as_json:
        names = ("model", "records", "total")
        body = {"streams": counts, "vectors": [dict(zip(names, row)) for row in vectors]}
        body["sources"] = [source.json(now) for source in sources.values()]
        click.echo(orjson.dumps(body).decode())
        return
    for count in counts:
        name = f"{count.connection_id}/{count.stream}"
        output.text(f"{name}: {output.counted(count.records, 'record')}, {count.deleted} deleted")
    connections = len({count.connection_id for count in counts})
    records = sum(count.records for count in counts)
    totals = zip((connections, len(counts), records), ("connection", "stream", "record"))
    click.echo(", ".join(output.counted(*total) for total in totals))
    for model, done, total in vectors:
        click.echo(f"vectors of {model}: {done} of {total} records")
    for source in sources.values():
        output.text(f"source {source.described(now)}")
    if plain:
        output.say(
            f"No field of {', '.join(plain[: BUDGETS.names_shown])} has a role, so hits have "
            "no title and no time. Write the manifest with rung import --write-manifest FILE, add "
            "x_pdpp_role to its fields, and pass it with --manifest FILE."
        )


@contextmanager
def existing(store: Place) -> Iterator[Writing]:
    """The store, which must exist."""
    with open_writer(required(store)) as writer:
        yield writer


def time_at(store: Place) -> datetime:
    """The time that decides what has expired, after a clock that was set back had its effect.

    Take it before grants are read: see `Activity.now`.
    """
    activity = Activity(open_sidecar(store))
    activity.flush()
    return activity.now()


def source_states(store: Place) -> tuple[dict[str, Freshness], datetime]:
    """The sources of the store that were tried, by name, and the time that decides their states."""
    sidecar = open_sidecar(store)
    tried = store.exists() and sidecar.exists()
    return all_sources(Entries(sidecar)) if tried else {}, Activity(sidecar).now()


def active_grants(writer: Writing, store: Place) -> list[Grant]:
    """The grants of the store that have not ended."""
    now = time_at(store)
    return [grant for grant in Registry(writer).grants() if grant.state(now) == "active"]


def required(store: Place) -> Place:
    """The place of a store, which must exist."""
    if store.exists():
        return store
    raise click.ClickException(
        f"There is no store at {store}. Create one with rung import or rung demo."
    )


@click.command(
    "log",
    help="Show, by day, which grants were used to read which streams.\n\nEach line shows the day "
    "(UTC), the grant, its label, the operation, the stream whose records were in the answers, and "
    "the number of requests. Servers write these counts every few seconds and keep them for "
    f"{KEPT_DAYS} days. The log contains no text, queries or record ids. Commands that read a "
    "store directly (--store, `rung stdio`) are not counted.",
)
@click.option(
    "--since", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="The first day to show."
)
@click.option("--grant", "name", help="Show only the grant with this id or label.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def log(since: date | None, name: str | None, as_json: bool, store: Place) -> None:
    with teaching(), existing(store) as writer:
        labels = {grant.grant_id: grant.label for grant in Registry(writer).grants()}
        uses = Activity(open_sidecar(store)).uses(f"{since:%Y-%m-%d}" if since else "")
    rows = [
        {**use._asdict(), "label": labels.get(use.grant_id)}
        for use in uses
        if name is None or name in (use.grant_id, labels.get(use.grant_id))
    ]
    if as_json:
        click.echo(orjson.dumps({"uses": rows}).decode())
        return
    for row in rows:
        name = f"{row['grant_id']} {row['label']!r}" if row["label"] else row["grant_id"]
        does = f"{row['operation']} {row['stream'] or '-'}"
        output.text(f"{row['day']} {name} {does} {row['requests']}")
    if not rows:
        which = "of this grant and period " if since or name else ""
        output.say(f"No requests {which}have been recorded. Only HTTP servers record requests.")


@click.group()
def owner() -> None:
    """Sign in to the owner pages. The server needs RUNG_SIGN_IN=on."""


@owner.command()
@click.option(
    "--url",
    envvar="RUNG_URL",
    help="The URL of the server. Also read from RUNG_URL. Default: the URL in the configuration "
    "file, or else RUNG_PUBLIC_URL, or else http://127.0.0.1:PORT.",
)
@store_option
def link(store: Place, url: str | None) -> None:
    """Print a link, with a code, that signs in one browser.

    The link works once and expires after ten minutes. The server must use the same store as
    this command, because the code is saved with the store. The command prints which store it used.
    """
    with teaching():
        code = _owner(store).new_code()
        base = url or settings.load().base
    output.say(
        f"Open this link within {LINK_SECONDS // 60} minutes, or enter the code {code}."
        f"\nThe link and the code work only on a server of the store {store.absolute()}."
    )
    click.echo(f"{base.rstrip('/')}/owner/login?code={code}")


@owner.command()
@click.option("--stdin", is_flag=True, help="Read the passphrase from standard input.")
@store_option
def passphrase(store: Place, stdin: bool) -> None:
    """Set the owner's passphrase and end all of the owner's sessions."""
    if stdin:
        text = sys.stdin.readline().rstrip("\r\n")
    else:
        text = click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
    with teaching():
        _owner(store).set_passphrase(text)
    output.say("The passphrase is set. Sign in at /owner.")


def _owner(store: Place) -> Owner:
    with existing(store):  # upgrades an older layout
        return Owner(Entries(open_sidecar(store)))
