"""`rung source` and `rung sync`: the owner's sources, and rounds that import new records."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread
from typing import Any, Final

import click
import orjson

from evidence.errors import EvidenceError, InvalidRequest
from evidence.model import members
from service import settings
from service.access.entries import Entries
from service.cli import config, import_report
from service.cli.output import counted, say, text
from service.cli.source import store_option
from service.cli.store import existing, source_states, stop_on_signals, teaching
from service.meaning.building import build
from service.meaning.encoder import Encoder
from service.meaning.opening import encoder_of
from service.place import Place, file_of
from service.records import freshness
from service.records.sidecar import open_sidecar
from service.records.sql.sources import stored_sources
from service.syncing import syncing
from service.syncing.connector import KEEP, REMOVE, SourceSettings
from service.syncing.owner_file import VARIABLE, OwnerFile
from service.syncing.round import Outcome
from service.syncing.syncing import kind_of, kinds
from service.webhook.delivery import send_waiting, start_sending

#: The exit code if a source waits for the owner.
WAITING: Final = 3
#: The state of a source in order.
NOTHING_NEW: Final = "nothing new."


@click.group()
def source() -> None:
    """Add, list and remove sources: mailboxes, folders and other places that `rung sync` reads.

    The store does not contain the descriptions of sources. They are in sources.toml, next to the
    configuration file, or in RUNG_SOURCES. Rung stores passwords in the system keyring or, if there
    is none, in sources.toml.
    """


@source.command()
@click.argument("name")
@click.argument("address")
@click.option("--kind", required=True, type=click.Choice(kinds()), help="The type of source.")
@click.option("--connection", help="The connection to import into (default: NAME).")
@click.option("--label", help="A display name for the connection.")
@click.option("--every", default="10m", show_default=True, help="The time between two syncs.")
@click.option(
    "--folder",
    "folders",
    multiple=True,
    help="Sync only this mailbox folder, calendar or address book. Can be given more than once.",
)
@click.option(
    "--deletions",
    type=click.Choice([REMOVE, KEEP]),
    default=REMOVE,
    show_default=True,
    help="Remove records that are deleted at the source, or keep them and set deleted_at_source.",
)
@click.option("--password-command", help="A command that prints the password or the OAuth token.")
@store_option
def add(name: str, store: Place, **options: Any) -> None:
    """Add a source.

    ADDRESS is a path, a URL or a command line, depending on --kind. If the source needs a
    password, the command asks for it or reads it from standard input. Rung stores the password in
    the system keyring or, if there is none, in sources.toml, which only you can read.
    """
    with teaching():
        kind, owner = kind_of(options["kind"]), _owner(store)
        options["address"] = kind.check(options["address"])
        if name in owner.sources():
            raise InvalidRequest(
                f"A source named {name!r} already exists. Choose another name. To replace the "
                f"password of {name}: rung source password {name}"
            )
        options["folders"] = list(options["folders"])
        entry = {key: option for key, option in options.items() if option}
        asks = kind.needs_secret(options["address"]) and not options["password_command"]
        secret = _secret() if asks else ""
        owner.put(name, entry)
        stored = f" Its password is stored in {owner.set_secret(name, secret)}." if secret else ""
    say(f"{name} was added to {owner.path}.{stored} To import from {name}: rung sync {name}")


@source.command()
@click.argument("name")
@store_option
def password(name: str, store: Place) -> None:
    """Replace the password of a source.

    The command asks for the new password, or reads it from standard input.
    """
    with teaching():
        owner = _owner(store)
        entry = owner.source(name)
        if not kind_of(entry.kind).needs_secret(entry.address):
            raise InvalidRequest(
                f"The address of {name!r} has no user name, so the source needs no password."
            )
        stored = owner.set_secret(name, _secret())
    say(f"The password of {name} is stored in {stored}. Next, run: rung sync {name}")


def _secret() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, err=True))
    if secret := sys.stdin.readline().rstrip("\r\n"):
        return secret
    raise InvalidRequest("No password was given. Type one, or pass one on standard input.")


@source.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def list_(as_json: bool, store: Place) -> None:
    """List the sources and their states.

    The list includes sources that other machines sync into this store.
    """
    with teaching():
        rows = list(_rows(store))
    if as_json:
        click.echo(orjson.dumps({"sources": rows}).decode())
        return
    for row in rows:
        place = f"{row['name']} ({row['kind']}) into {row['connection']}"
        text(f"{place}: {freshness.describe(row)}")
    if not rows:
        say(_no_sources(_owner(store)))


def _no_sources(owner: OwnerFile) -> str:
    """Describes that a store has no sources, and which other stores have some."""
    others = "".join(f"\nSources exist for --store {place}" for place in owner.other_stores())
    return f"There are no sources for {owner.store.absolute()}. Add one: rung source add{others}"


def _rows(store: Place) -> Iterator[dict[str, Any]]:
    """The sources of the owner's file, then those of the store alone."""
    owned = _owner(store).sources()
    states, now = source_states(store)
    for name, entry in owned.items():
        tried = states.get(name)
        state = "paused" if entry.paused else tried.state(now) if tried else "new"
        yield _row(entry, state, tried)
    if store.exists():
        with existing(store) as writer:
            foreign = [stored for stored in stored_sources(writer) if stored.name not in owned]
        yield from (_row(stored, "from another machine") for stored in foreign)


def _row(source: object, state: str, tried: freshness.Freshness | None = None) -> dict[str, Any]:
    synced_at = freshness.time_text(tried.synced_at) if tried else None
    times = {"synced_at": synced_at, "failure": tried.failure if tried else ""}
    return {**members(source, "name", "kind", "connection"), "state": state, **times}


@source.command()
@click.argument("name")
@store_option
def pause(name: str, store: Place) -> None:
    """Exclude a source from `rung sync` until you resume the source."""
    _set_paused(store, name, True)
    say(f"{name} is paused. Resume it with: rung source resume {name}")


@source.command()
@click.argument("name")
@store_option
def resume(name: str, store: Place) -> None:
    """Resume a paused source."""
    _set_paused(store, name, False)
    say(f"{name} is no longer paused. Sync it now with: rung sync {name}")


def _set_paused(store: Place, name: str, paused: bool) -> None:
    with teaching():
        _owner(store).assign(name, paused=paused or None)
        states, _ = source_states(store)
        if name in states:
            state = replace(states[name], is_paused=paused)
            freshness.save(Entries(open_sidecar(store)), state)


@source.command()
@click.argument("name")
@click.option("--with-records", is_flag=True, help="Also remove the source's records.")
@store_option
def remove(name: str, with_records: bool, store: Place) -> None:
    """Remove a source. Without --with-records, its records stay in the store."""
    with teaching():
        owner, count = _owner(store), None
        owned = name in owner.sources()
        if store.exists():
            with existing(store) as writer:
                count = syncing.remove(writer, name, with_records=with_records)
            freshness.forget(Entries(open_sidecar(store)), name)
            if with_records and count is not None:
                say(f"{counted(count, 'record')} removed.")
        if owned or count is None:
            owner.remove(name)  # raises if there is none
    say(f"{name} was removed.")


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--every",
    is_flag=True,
    help="Keep running, and sync each source at its interval, until interrupted.",
)
@click.option(
    "--accept-deletions",
    is_flag=True,
    help="Accept any number of deletions from the named sources.",
)
@store_option
def sync(names: tuple[str, ...], every: bool, accept_deletions: bool, store: Place) -> None:
    """Import new and changed records from the sources that you name, or from all sources.

    Records that are deleted at a source are removed, unless the source was added with --deletions
    keep. The exit code is 3 if a source is paused because too many of its records were deleted (see
    --accept-deletions), and otherwise 1 if a source fails.
    """
    if accept_deletions and (every or not names):
        raise click.UsageError(
            "--accept-deletions requires the names of sources, and cannot be used with --every."
        )
    with teaching():
        owner = _owner(store)
        chosen = [owner.source(name) for name in names] or list(owner.sources().values())
        encoder = encoder_of(settings.load())
    if not chosen:
        raise click.ClickException(_no_sources(owner))
    if every:
        _go_on(store, chosen, encoder)
        return
    codes = [_one_round(store, entry, accept=accept_deletions)[0] for entry in chosen]
    send_waiting(store, say)
    if encoder is not None and store.exists():
        with suppress(EvidenceError):  # the next round builds what is missing
            build(store, encoder, Event(), lambda progress: None)
    click.get_current_context().exit(max(codes))


def _one_round(
    store: Place, entry: SourceSettings, *, accept: bool = False, last: str = ""
) -> tuple[int, str]:
    """Does a round and reports it; returns the exit code and the state of the source.

    A state that is still the `last` one is not reported.
    """
    name, outcome, code, state = entry.name, Outcome(), 0, NOTHING_NEW
    try:
        if _owner(store).source(name).paused:  # perhaps since `--every` began
            state = f"paused. Resume it with: rung source resume {name}"
        else:
            outcome = syncing.sync(store, entry, accept=accept)
    except EvidenceError as error:
        code, state = 1, error.text
    if outcome.waits:
        code, state = WAITING, f"paused. To accept deletions: rung sync {name} --accept-deletions"
    if came := [f"{number} {what}" for what, number in outcome.counts.items() if number]:
        outcome.lines.append(f"{', '.join(came)}.")
    if state != last and not (came and state == NOTHING_NEW):
        outcome.lines += [f"{outcome.waits}.", state] if outcome.waits else [state]
    for line in outcome.lines:
        say(f"{name}: {line}")
    if outcome.declared:
        import_report.of_source(store, entry.connection)
    return code, state


def _go_on(store: Place, chosen: list[SourceSettings], encoder: Encoder | None) -> None:
    """Does rounds of each source until a signal."""
    stop, context = stop_on_signals(), click.get_current_context()
    states = dict.fromkeys((entry.name for entry in chosen), NOTHING_NEW)

    def do_round(entry: SourceSettings) -> bool:
        with context:
            code, states[entry.name] = _one_round(store, entry, last=states[entry.name])
        return code == 0

    start_sending(settings.load(), store, stop, say)
    if encoder is not None:
        words = (store, encoder, stop, lambda progress: None, lambda error: None)
        Thread(target=build, args=words, daemon=True).start()

    with ThreadPoolExecutor(len(chosen)) as pool:
        list(pool.map(lambda entry: syncing.go_on(entry, stop, do_round), chosen))


def _owner(store: Place) -> OwnerFile:
    """The owner's file for a store."""
    environment = settings.environment()
    if environment.get("DYNO") and file_of(store) is not None:
        raise InvalidRequest(
            "Each dyno has its own disk, so the server would not see this store. Set "
            f"DATABASE_URL, and put the sources into {VARIABLE}."
        )
    return OwnerFile(config.path_of(environment), store, environment)
