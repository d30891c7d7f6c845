"""`rung grant`: creates, lists and revokes grants."""

import re
import sys
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
import orjson

from evidence.limits import BUDGETS
from service.place import Place
from service.cli.source import read_json, store_option
from service.cli.output import say
from service.cli.store import clock, existing, teaching
from service.access.entries import Entries
from service.access.grants import create, revoke
from service.access.registry import Grant, Registry
from service.access.sidecar import Sidecar
from service.access.signins import Signins
from service.access.tokens import Now
from service.records.streams import manifests_of
from service.records.values import microseconds, moment
from service.records.writing import Writing

_SPAN = re.compile(r"([1-9][0-9]{0,4})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.group()
def grant() -> None:
    """Make, list and revoke the tokens that may read the store."""


@grant.command("create")
@click.option("--connection", "connections", multiple=True, help="Only these; default: all.")
@click.option("--stream", "streams", multiple=True, help="Only these; default: all.")
@click.option("--fields", help="Only these fields, with commas between; default: all.")
@click.option("--since", help="Only records from this time on (ISO 8601).")
@click.option("--until", help="Only records before this time (ISO 8601).")
@click.option("--record", "records", multiple=True, help="Only these record ids.")
@click.option("--expires", help="When the token ends: 12h, 30d, 8w or an ISO 8601 time.")
@click.option("--label", help="A name to list and revoke it by.")
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The whole grant as JSON, in place of the options above but --expires and --label.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def create_(
    connections: tuple[str, ...],
    streams: tuple[str, ...],
    fields: str | None,
    since: str | None,
    until: str | None,
    records: tuple[str, ...],
    expires: str | None,
    label: str | None,
    path: Path | None,
    as_json: bool,
    store: Place,
) -> None:
    """Make a grant and print its token, which is shown this once.

    What the grant covers is fixed now: streams and fields that come later are not in it.
    """
    if path and (connections or streams or fields or since or until or records):
        raise click.UsageError("--file is the whole grant; leave the narrowing options out.")
    times = {"since": since, "until": until}
    limits: dict[str, Any] = {
        "time_constraint": {word: text for word, text in times.items() if text} or None,
        "resources": list(records) or None,
    }
    limits = {word: limit for word, limit in limits.items() if limit is not None}
    wanted = [name.strip() for name in fields.split(",")] if fields else None
    with teaching(), existing(store) as writer:
        document = (
            read_json(path) if path else _document(writer, connections, streams, wanted, limits)
        )
        ends = expiry(expires, datetime.now(UTC)) if expires else None
        registry = Registry(writer)
        now = clock(store)
        if label and (same := _active(registry, label, now)):
            raise click.ClickException(
                f"The label {label!r} is in use by {same[0].grant_id}. Choose another one, or end "
                f"that grant first: rung grant revoke {same[0].grant_id}"
            )
        grant_id, token = create(registry, document, label=label, expires_at=ends)
        (entry,) = [item for item in registry.grants() if item.grant_id == grant_id]
    if as_json:
        click.echo(orjson.dumps(_to_json(entry, now) | {"token": token}).decode())
        return
    say(f"{grant_id}: {_describe(entry)}. Keep the token; it is not shown again.")
    click.echo(token)


@grant.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def list_(as_json: bool, store: Place) -> None:
    """List the grants, without their tokens."""
    with teaching(), existing(store) as writer:
        entries, now = Registry(writer).grants(), clock(store)
    if as_json:
        click.echo(orjson.dumps({"grants": [_to_json(entry, now) for entry in entries]}).decode())
        return
    for entry in entries:
        label = f" {entry.label!r}" if entry.label else ""
        click.echo(f"{entry.grant_id} {entry.state(now)}{label}: {_describe(entry)}")


@grant.command("revoke")
@click.argument("name")
@store_option
def revoke_(name: str, store: Place) -> None:
    """End the grant with this id or label, at once."""
    with teaching(), existing(store) as writer:
        registry = Registry(writer)
        if len(same := _active(registry, name, clock(store))) > 1:
            name = _which(name, same)
        for grant_id in revoke(registry, name):
            click.echo(f"{grant_id} revoked")


@grant.command("map")
@click.argument("issuer")
@click.argument("subject")
@click.argument("name", metavar="[GRANT]", required=False)
@store_option
def map_(issuer: str, subject: str, name: str | None, store: Place) -> None:
    """Let tokens of another authorization server read a grant (its id or label).

    ISSUER is its URL, SUBJECT the user or client in its tokens (`sub`). Without a grant, the
    mapping ends.
    """
    with teaching(), existing(store) as writer:
        now, entries = clock(store), Registry(writer).grants()
        named = [one for one in entries if name in (one.grant_id, one.label)]
        ids = [one.grant_id for one in named if one.state(now) == "active"]
        if name and len(ids) != 1:
            raise click.ClickException(
                f"{len(ids)} active grants are named {name!r}. Use an id of `rung grant list`."
            )
        Signins(Entries(Sidecar(store))).map(issuer, subject, ids[0] if name else None)
    say(f"{subject} of {issuer} " + (f"reads {ids[0]}." if name else "has no grant any more."))


def _active(registry: Registry, label: str, now: Now) -> list[Grant]:
    """The active grants with this label."""
    named = [one for one in registry.grants() if one.label == label]
    return [one for one in named if one.state(now) == "active"]


def _which(label: str, entries: list[Grant]) -> str:
    """Asks for the id of one of several grants with the same label."""
    say(f"{len(entries)} grants have the label {label!r}:")
    for entry in entries:
        say(f"{entry.grant_id}: {_describe(entry)}, made {entry.created_at}")
    if not sys.stdin.isatty():
        raise click.ClickException("Nothing was revoked. Give the id of one.")
    ids = [entry.grant_id for entry in entries]
    chosen: str = click.prompt("Which one", type=click.Choice(ids), err=True)
    return chosen


def _document(
    writer: Writing,
    connections: tuple[str, ...],
    streams: tuple[str, ...],
    fields: list[str] | None,
    limits: dict[str, Any],
) -> dict[str, Any]:
    """The grant document that the options describe."""
    entries: list[dict[str, Any]] = []
    known: dict[str, set[str]] = {}
    for connection_id in connections or writer.connection_ids():
        declared = {manifest.name: manifest for manifest in manifests_of(writer, connection_id)}
        if not declared:
            entries.append({"connection_id": connection_id})
        for name in (streams if connections else [s for s in streams if s in declared]) or declared:
            if streams and name not in streams:
                continue
            entry = {"connection_id": connection_id, "stream": name} | limits
            known.setdefault(name, set()).update(declared[name].fields if name in declared else ())
            if fields is not None and name in declared:
                entry["fields"] = [field for field in fields if field in declared[name].fields]
            if entry.get("fields") != []:
                entries.append(entry)
    _check_found(entries, known, streams, fields)
    return {"streams": entries}


def _check_found(
    entries: list[dict[str, Any]],
    known: dict[str, set[str]],
    streams: tuple[str, ...],
    fields: list[str] | None,
) -> None:
    """Refuses names that the store does not have; `known` has the fields of streams."""
    declared = set().union(*known.values())
    for field in fields or ():
        if declared and field not in declared:
            raise click.ClickException(
                f"No stream of this grant declares the field {field!r}. {_near(field, declared)}"
            )
    for name in streams:
        if not any(entry.get("stream") == name for entry in entries):
            raise click.ClickException(f"No connection has a stream {name!r} with these fields.")
    if not entries:
        raise click.ClickException("The store is empty; import something first: rung import.")


def _near(name: str, known: Collection[str]) -> str:
    """The nearest known name, or a list of them."""
    found = get_close_matches(name, known, 1)
    if found:
        return f"Did you mean {found[0]!r}?"
    more = ", …" if len(known) > BUDGETS.names_shown else ""
    return f"There are {', '.join(sorted(known)[:BUDGETS.names_shown])}{more}."


def expiry(text: str, now: datetime) -> str:
    """The time of `12h`, `30d`, `8w` or an ISO 8601 time, as ISO 8601."""
    found = _SPAN.fullmatch(text)
    if found:
        end = now + timedelta(**{_UNITS[found[2]]: int(found[1])})
        return end.isoformat(timespec="seconds").replace("+00:00", "Z")
    stored = microseconds(text)
    if stored is None:
        raise click.ClickException(f"--expires {text!r}: give 12h, 30d, 8w or an ISO 8601 time.")
    return moment(stored)


def _describe(entry: Grant) -> str:
    connections = len({stream.connection_id for stream in entry.streams})
    until = f", until {entry.expires_at}" if entry.expires_at else ", never expires"
    return f"{_count(len(entry.streams), 'stream')} of {_count(connections, 'connection')}{until}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _to_json(entry: Grant, now: Now) -> dict[str, Any]:
    return {
        "grant_id": entry.grant_id,
        "label": entry.label,
        "state": entry.state(now),
        "created_at": entry.created_at,
        "expires_at": entry.expires_at,
        "revoked_at": entry.revoked_at,
        "streams": [
            {
                "connection_id": stream.connection_id,
                "stream": stream.stream,
                "fields": list(stream.fields),
            }
            for stream in entry.streams
        ],
    }
