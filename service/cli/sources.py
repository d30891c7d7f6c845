"""`rung source` and `rung sync`: the owner's sources, and rounds that bring what is new."""

import sys
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread
from typing import Any, Final

import click
import orjson

from evidence.errors import EvidenceError, InvalidRequest
from service import settings
from service.access.entries import Entries
from service.cli import config, import_report
from service.cli.events import send_events, start_sending
from service.cli.output import counted, say, text
from service.cli.source import store_option
from service.cli.store import existing, source_states, stop_on_signals, teaching
from service.meaning.building import build
from service.meaning.opening import encoder_of
from service.place import Place, file_of
from service.records import freshness
from service.records.sidecar import open_sidecar
from service.syncing import syncing
from service.syncing.connector import KEEP, REMOVE, SourceSettings
from service.syncing.owner_file import NAME, VARIABLE, OwnerFile
from service.syncing.round import Outcome
from service.syncing.table import kind_of, kinds

#: The exit code if a source waits for the owner.
WAITING: Final = 3


@click.group()
def source() -> None:
    """Keep the store fresh: add, list and remove sources.

    Sources are in sources.toml beside the configuration file, never in the store.
    """


@source.command()
@click.argument("name")
@click.argument("address")
@click.option("--kind", required=True, type=click.Choice(kinds()), help="What the address is of.")
@click.option("--connection", help="The connection to bring records into (default: NAME).")
@click.option("--label", help="A display name for the connection.")
@click.option("--every", default="10m", show_default=True, help="The time between two rounds.")
@click.option(
    "--folder",
    "folders",
    multiple=True,
    help="Only this folder, calendar or address book. Can be repeated.",
)
@click.option(
    "--deletions",
    type=click.Choice([REMOVE, KEEP]),
    default=REMOVE,
    show_default=True,
    help="Remove records that are deleted at the source, or keep them with deleted_at_source.",
)
@click.option("--password-command", help="A command that prints the password or the OAuth token.")
@store_option
def add(name: str, store: Place, **options: Any) -> None:
    """Add the source NAME at ADDRESS: a path, an address, or a command line, as --kind requires.

    A password is asked for, or read from standard input; it goes into the keyring of the system,
    or else into sources.toml, which only you can read.
    """
    with teaching():
        kind, owner = kind_of(options["kind"]), _owner(store)
        options["address"] = kind.check(options["address"])
        if name in owner.sources():
            raise InvalidRequest(f"There is a source {name!r} already. Choose another name.")
        options["folders"] = list(options["folders"])
        entry = {key: option for key, option in options.items() if option}
        asks = kind.needs_secret(options["address"]) and not options["password_command"]
        secret = _secret() if asks else ""
        owner.check(name, entry)
        if secret:
            owner.keep_secret(name, entry, secret)
        owner.put(name, entry)
    say(f"{name} is added to {owner.path}. Bring its records: rung sync {name}")


def _secret() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, err=True))
    return sys.stdin.readline().rstrip("\r\n")


@source.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def list_(as_json: bool, store: Place) -> None:
    """List the sources with their states, and those of the store from another machine."""
    with teaching():
        rows = list(_rows(store))
    if as_json:
        click.echo(orjson.dumps({"sources": rows}).decode())
        return
    for row in rows:
        described = freshness.describe(row["state"], row["synced_at"], row["failure"])
        text(f"{row['name']} ({row['kind']}) into {row['connection']}: {described}")
    if not rows:
        say("There are no sources. Add one: rung source add")


def _rows(store: Place) -> list[dict[str, Any]]:
    """The sources of the owner's file, then those of the store alone."""
    owned, rows = _owner(store).sources(), list[dict[str, Any]]()
    states, now = source_states(store)
    for name, entry in owned.items():
        state = states.get(name)
        rows.append(
            {
                **{"name": name, "kind": entry.kind, "connection": entry.connection},
                "state": "paused" if entry.paused else state.state(now) if state else "new",
                "synced_at": freshness.time_text(state.synced_at) if state else None,
                "failure": state.failure if state else "",
            }
        )
    if store.exists():
        with existing(store) as writer:
            foreign = [row for row in syncing.stored(writer) if row.name not in owned]
        rows += [
            {
                **{"name": row.name, "kind": row.kind, "connection": row.connection},
                **{"state": "from another machine", "synced_at": None, "failure": ""},
            }
            for row in foreign
        ]
    return rows


@source.command()
@click.argument("name")
@store_option
def pause(name: str, store: Place) -> None:
    """Leave a source out of rung sync until it is resumed."""
    _set_paused(store, name, True)
    say(f"{name} is paused. Continue with: rung source resume {name}")


@source.command()
@click.argument("name")
@store_option
def resume(name: str, store: Place) -> None:
    """Continue with a source that was paused."""
    _set_paused(store, name, False)
    say(f"{name} continues with the next rung sync.")


def _set_paused(store: Place, name: str, paused: bool) -> None:
    with teaching():
        _owner(store).set_paused(name, paused)
        if store.exists():
            entries = Entries(open_sidecar(store))
            state = freshness.all_sources(entries).get(name)
            if state and state.is_paused != paused:
                freshness.save(entries, replace(state, is_paused=paused))


@source.command()
@click.argument("name")
@click.option("--with-records", is_flag=True, help="Remove its records from the store as well.")
@store_option
def remove(name: str, with_records: bool, store: Place) -> None:
    """Remove a source. Its records stay in the store unless --with-records is given."""
    with teaching():
        owner = _owner(store)
        owned = owner.sources().get(name)
        if owned is None and not store.exists():
            owner.entry(name)
        if store.exists():
            with existing(store) as writer:
                count = syncing.remove(writer, name, with_records=with_records)
            freshness.forget(Entries(open_sidecar(store)), name)
            if with_records:
                say(f"{counted(count, 'record')} removed.")
        if owned is not None:
            owner.remove(name)
    say(f"{name} is removed.")


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--every", is_flag=True, help="Go on, each source at its interval, until interrupted."
)
@click.option(
    "--accept-deletions", is_flag=True, help="Let any number of records of the named sources go."
)
@store_option
@click.pass_context
def sync(
    context: click.Context,
    names: tuple[str, ...],
    every: bool,
    accept_deletions: bool,
    store: Place,
) -> None:
    """Bring what is new at the sources into the store: of NAMES, or of all.

    Exits with 3 if a source waits for --accept-deletions because too many of its records are gone,
    and with 1 if a source failed.
    """
    if accept_deletions and (every or not names):
        raise click.UsageError("--accept-deletions needs the names of sources, and one round.")
    with teaching():
        owner = _owner(store)
        sources = owner.sources()
        chosen = [sources[name] if name in sources else _missing(owner, name) for name in names]
        chosen = chosen or list(sources.values())
    if not chosen:
        raise click.ClickException("There are no sources. Add one: rung source add")
    if every:
        _go_on(store, chosen)
        return
    codes = [_one_round(store, entry, accept_deletions) for entry in chosen]
    send_events(store)
    _build_vectors(store)
    if code := max(codes):
        context.exit(code)


def _missing(owner: OwnerFile, name: str) -> SourceSettings:
    raise InvalidRequest(
        f"{owner.path} names no source {name!r} for this store. See them: rung source list"
    )


def _one_round(store: Place, entry: SourceSettings, accept: bool = False) -> int:
    """Does a round and reports it; returns the exit code."""
    if entry.paused:
        say(f"{entry.name}: paused. Continue with: rung source resume {entry.name}")
        return 0
    try:
        outcome = syncing.sync(store, entry, accept=accept)
    except EvidenceError as error:
        say(f"{entry.name}: {error.message} {error.hint or ''}".rstrip())
        return 1
    return _report(store, entry, outcome)


def _report(store: Place, entry: SourceSettings, outcome: Outcome | None) -> int:
    again = f"rung sync {entry.name} --accept-deletions"
    if outcome is None:
        say(f"{entry.name}: paused, because many records are gone. If that is right: {again}")
        return WAITING
    for line in outcome.lines:
        say(f"{entry.name}: {line}")
    counts = outcome.counts
    words = ("new", "changed", "deleted", "refused")
    parts = [f"{getattr(counts, word)} {word}" for word in words if getattr(counts, word)]
    parts += [f"{outcome.marked} marked as deleted"] if outcome.marked else []
    say(f"{entry.name}: {', '.join(parts) or 'nothing new'}.")
    if outcome.declared:
        with existing(store) as writer:
            manifests = writer.manifests(entry.connection)
            import_report.of_connection(writer, entry.connection, manifests)
    if outcome.is_paused:
        what = "The source lists nothing" if outcome.nothing_listed else ""
        what = what or f"{counted(outcome.missing, 'record')} are gone"
        say(f"{entry.name}: paused. {what}. If that is right: {again}")
        return WAITING
    return 0


def _go_on(store: Place, chosen: list[SourceSettings]) -> None:
    """Does rounds of each source until a signal."""
    stop = stop_on_signals()
    context = click.get_current_context()

    def go_on(entry: SourceSettings) -> None:
        with context:
            syncing.go_on(store, entry, stop, lambda source: _one_round(store, source) == 0)

    start_sending(store, stop)
    if (encoder := encoder_of(settings.load())) is not None:
        words = (store, encoder, stop, lambda progress: None, lambda error: None)
        Thread(target=build, args=words, daemon=True).start()

    threads = [Thread(target=go_on, args=(entry,)) for entry in chosen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _build_vectors(store: Place) -> None:
    """Builds the vectors that are missing, if search by meaning is on and nobody else does."""
    if (encoder := encoder_of(settings.load())) is not None and store.exists():
        with suppress(EvidenceError):
            build(store, encoder, Event(), lambda progress: None)


def _owner(store: Place) -> OwnerFile:
    """The owner's file for a store."""
    environment = settings.environment()
    if environment.get("DYNO") and file_of(store) is not None:
        raise InvalidRequest(
            "Each dyno has a disk of its own: the server would not see this store. Set "
            f"DATABASE_URL, and put the sources into {VARIABLE}."
        )
    path = config.path_of(environment).with_name(NAME)
    return OwnerFile(path, store, environment.get(VARIABLE))
