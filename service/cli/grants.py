"""`rung grant` and `rung package`: create, list and revoke grants and packages of grants."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
import orjson

from evidence import handles
from evidence.errors import InvalidRequest
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service import credentials, keys, settings
from service.access import grants, packages
from service.access.registry import Grant, Member, Package, Registry
from service.access.entries import Entries
from service.access.signins import Signins
from service.cli.output import counted, say
from service.cli.source import FILE, PATH, read_json, store_option
from service.cli.store import active_grants, existing, teaching, time_at
from service.place import Place
from service.records.opening import open_reader
from service.records.sidecar import open_sidecar
from evidence.times import duration, microseconds, moment, to_the_second
from service.records.writing import Writing
from service.sources.remote.remote_authority import remote_member

expires_option = click.option(
    "--expires",
    help="When the token expires: after a time such as 12h, 30d or 8w, or at an ISO 8601 time.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def grant() -> None:
    """Create, list and revoke grants, and map users to them."""


@grant.command("create")
@click.option(
    "--connection",
    "connections",
    multiple=True,
    help="Limit the grant to this connection. Can be given more than once.",
)
@click.option(
    "--stream",
    "streams",
    multiple=True,
    help="Limit the grant to this stream. Can be given more than once.",
)
@click.option("--fields", help="Limit the grant to these fields, separated by commas.")
@click.option(
    "--since",
    help="Limit the grant to records from this time on (ISO 8601). Each stream of the grant "
    "needs a time field.",
)
@click.option(
    "--until",
    help="Limit the grant to records before this time (ISO 8601). Each stream of the grant "
    "needs a time field.",
)
@click.option(
    "--record",
    "records",
    multiple=True,
    help="Limit the grant to this record. Give the record_id that `rung fetch ID` prints, not the "
    "whole ID. Can be given more than once.",
)
@expires_option
@click.option("--label", help="A name by which you can recognize and revoke the grant.")
@click.option(
    "--file",
    "path",
    type=FILE,
    help="A JSON file that describes the whole grant, instead of the options that limit it.",
)
@json_option
@store_option
def create_(
    expires: str | None,
    label: str | None,
    path: Path | None,
    as_json: bool,
    store: Place,
    **narrowing: Any,
) -> None:
    """Create a grant and print its token. The token is shown only once.

    The grant does not cover streams or fields that are added later.
    """
    if path and any(narrowing.values()):
        raise click.UsageError(
            "The file describes the whole grant. Leave out the options that narrow it."
        )
    with teaching(), existing(store) as writer:
        document = read_json(path) if path else _document(writer, narrowing)
        registry, now = Registry(writer), time_at(store)
        same = [entry for entry in active_grants(writer, store) if label and entry.label == label]
        if same:
            raise click.ClickException(
                f"Grant {same[0].grant_id} already has the label {label!r}. Use another label, or "
                f"revoke that grant first: rung grant revoke {same[0].grant_id}"
            )
        ends = expiry(expires, now)
        grant_id, token = grants.create(registry, document, label=label, expires_at=ends)
        (entry,) = [item for item in registry.grants() if item.grant_id == grant_id]
    if as_json:
        click.echo(orjson.dumps(_to_json(entry, now) | {"token": token}).decode())
        return
    say(f"{grant_id}: {_describe(entry)}. Save the token; it is not shown again.")
    click.echo(token)


@grant.command("list")
@json_option
@store_option
def list_(as_json: bool, store: Place) -> None:
    """List the grants. Tokens are not shown."""
    with teaching(), existing(store) as writer:
        now, entries = time_at(store), Registry(writer).grants()
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
    """Revoke a grant by its id or label."""
    with teaching(), existing(store) as writer:
        same = [active for active in active_grants(writer, store) if active.label == name]
        if len(same) > 1:
            say(f"{len(same)} grants have the label {name!r}:")
            for entry in same:
                say(f"{entry.grant_id}: {_describe(entry)}, created {entry.created_at}")
            raise click.ClickException("Nothing was revoked. Give the id of one of these grants.")
        revoked = grants.revoke(Registry(writer), name)
        Signins(Entries(open_sidecar(store))).forget(revoked)
        for grant_id in revoked:
            click.echo(f"{grant_id} revoked")


@grant.command("map")
@click.argument("issuer")
@click.argument("subject")
@click.argument("name", metavar="[GRANT]", required=False)
@store_option
def map_(issuer: str, subject: str, name: str | None, store: Place) -> None:
    """Map a user of another authorization server to a grant.

    ISSUER is the URL of that server. SUBJECT is the user or client that its tokens name in `sub`.
    GRANT is the id or label of the grant. Without GRANT, the command removes the mapping.
    """
    with teaching(), existing(store) as writer:
        active = active_grants(writer, store)
        ids = [entry.grant_id for entry in active if name in (entry.grant_id, entry.label)]
        if name and len(ids) != 1:
            raise click.ClickException(
                f"{len(ids)} active grants match {name!r}. Use an id from `rung grant list`."
            )
        Signins(Entries(open_sidecar(store))).map(issuer, subject, ids[0] if name else None)
    say(f"{subject} of {issuer} " + (f"now uses {ids[0]}." if name else "no longer has a grant."))


def _document(writer: Writing, narrowing: Mapping[str, Any]) -> dict[str, Any]:
    """The grant document that the options describe; refuses names that the store does not have."""
    connections, streams = narrowing["connections"], narrowing["streams"]
    fields = [key.strip() for key in narrowing["fields"].split(",")] if narrowing["fields"] else []
    times = {word: narrowing[word] for word in ("since", "until") if narrowing[word]}
    limits = {"time_constraint": times, "resources": list(narrowing["records"])}
    limits = {word: limit for word, limit in limits.items() if limit}
    for id_ in narrowing["records"]:
        if (ref := _as_hit(id_, writer)) is not None:
            options = f"--connection {ref.connection_id} --stream {ref.stream}"
            raise click.ClickException(
                f"--record {id_} is the id of a hit. Give only its record id: --record "
                f"{shlex.quote(ref.record_id)} {options}"
            )
    entries: list[dict[str, Any]] = []
    declared_fields: set[str] = set()
    for connection_id in connections or writer.connection_ids():
        declared = {manifest.name: manifest for manifest in writer.manifests(connection_id)}
        if not declared:
            entries.append({"connection_id": connection_id})
        stream_names = streams if connections else [name for name in streams if name in declared]
        for name in stream_names if streams else declared:
            entry = {"connection_id": connection_id, "stream": name} | limits
            if name in declared:
                declared_fields |= declared[name].fields.keys()
                if fields:
                    entry["fields"] = [field for field in fields if field in declared[name].fields]
            if entry.get("fields") != []:
                entries.append(entry)
    for field in fields:
        if declared_fields and field not in declared_fields:
            near = _near(field, declared_fields)
            raise click.ClickException(
                f"No stream of this grant declares the field {field!r}. {near}"
            )
    for name in streams:
        if not any(entry.get("stream") == name for entry in entries):
            raise click.ClickException(f"No connection has a stream {name!r} with these fields.")
    if not entries:
        raise click.ClickException("The store is empty. Import records first: rung import.")
    return {"streams": entries}


def _as_hit(text: str, writer: Writing) -> RecordRef | None:
    """The record that a text names with its connection and stream, if the store has both."""
    try:
        ref = handles.parse(text)
    except InvalidRequest:
        return None
    streams = [manifest.name for manifest in writer.manifests(ref.connection_id or "")]
    return ref if ref.stream in streams else None


def _near(name: str, names: Collection[str]) -> str:
    """The nearest of the names, or a list of them."""
    close = get_close_matches(name, names, 1)
    if close:
        return f"Did you mean {close[0]!r}?"
    ellipsis = ", …" if len(names) > BUDGETS.names_shown else ""
    return f"Available: {', '.join(sorted(names)[:BUDGETS.names_shown])}{ellipsis}."


def expiry(text: str | None, now: datetime) -> str | None:
    """The time of `12h`, `30d`, `8w` or an ISO 8601 time, as ISO 8601; None of None."""
    if not text:
        return None
    if length := duration(text):
        return to_the_second(now + length)
    stored = microseconds(text)
    if stored is None:
        raise click.ClickException(
            f"--expires: {text!r} is not a time. Give a duration (12h, 30d) or an ISO 8601 time."
        )
    return moment(stored)


def _describe(entry: Grant) -> str:
    connections = len({stream.connection_id for stream in entry.streams})
    until = f", expires {entry.expires_at}" if entry.expires_at else ", never expires"
    return f"{counted(len(entry.streams), 'stream')} of {counted(connections, 'connection')}{until}"


def _to_json(entry: Grant, now: datetime) -> dict[str, Any]:
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
                "fields": stream.fields,
            }
            for stream in entry.streams
        ],
    }


@click.group()
def package() -> None:
    """Create, list and revoke packages of several grants."""


@package.command("create")
@click.option(
    "--grant",
    "names",
    multiple=True,
    help="The id or label of a grant in this store. Can be given more than once.",
)
@click.option(
    "--remote",
    "urls",
    multiple=True,
    help="The URL of a PDPP resource server that issued a grant. Can be given more than once.",
)
@click.option(
    "--token-file",
    "files",
    multiple=True,
    type=PATH,
    help="A file with the token for a --remote server. Give one file for each --remote, in the "
    "same order.",
)
@expires_option
@click.option("--label", help="A name by which you can recognize and revoke the package.")
@store_option
def create_package(
    names: tuple[str, ...],
    urls: tuple[str, ...],
    files: tuple[Path, ...],
    expires: str | None,
    label: str | None,
    store: Place,
) -> None:
    """Create a package of grants and print its token. The token is shown only once.

    The command sends each --remote token to its server, to ask for the grant. The tokens are stored
    encrypted with RUNG_SECRET_KEY or, if that is not set, with a key in the store.
    """
    if len(urls) != len(files):
        raise click.UsageError("Pass one --token-file for each --remote, in the same order.")
    from service.records.overview import local_member  # loads what reads records

    with teaching(), existing(store) as writer:
        registry = Registry(writer)
        with closing(open_reader(store)) as reader, reader.snapshot() as snapshot:
            members = [local_member(registry, snapshot, name) for name in names]
        members += _remote_members(urls, files)
        sealer = keys.of_tokens(_secret(writer, remote=bool(urls)))
        ends = expiry(expires, time_at(store))
        package_id, token = packages.create(registry, members, sealer, label=label, expires_at=ends)
        (entry,) = [entry for entry in registry.packages() if entry.package_id == package_id]
    say(f"{package_id}: {_describe_package(entry)}. Save the token; it is not shown again.")
    click.echo(token)


@package.command("list")
@store_option
def list_packages(store: Place) -> None:
    """List the packages. Tokens are not shown."""
    with teaching(), existing(store) as writer:
        now, entries = time_at(store), Registry(writer).packages()
    for entry in entries:
        label = f" {entry.label!r}" if entry.label else ""
        click.echo(f"{entry.package_id} {entry.state(now)}{label}: {_describe_package(entry)}")


@package.command("revoke")
@click.argument("name")
@store_option
def revoke_package(name: str, store: Place) -> None:
    """Revoke a package by its id, or all packages with a given label.

    The grants in a package stay valid.
    """
    with teaching(), existing(store) as writer:
        for package_id in packages.revoke(Registry(writer), name):
            click.echo(f"{package_id} revoked")


def _remote_members(urls: Sequence[str], files: Sequence[Path]) -> Iterator[Member]:
    for url, file in zip(urls, files):
        token = credentials.from_file(file)
        if warning := credentials.exposure(file):
            say(f"Warning: {warning}")
        deadline = Deadline.after(BUDGETS.upstream_seconds)
        yield remote_member(credentials.provider_url(url), token, deadline)


def _secret(writer: Writing, *, remote: bool) -> bytes:
    """The secret of the deployment: that of the environment, or the one kept in the store."""
    try:
        secret = settings.load().secret_key
    except settings.SettingsError as error:
        raise click.ClickException(str(error)) from error
    if secret is None and remote:
        say(
            "Warning: RUNG_SECRET_KEY is not set, so the store contains these tokens and "
            "the key that encrypts them. Set RUNG_SECRET_KEY here and on the server."
        )
    return (secret or str(writer.meta("secret"))).encode()


def _describe_package(entry: Package) -> str:
    names = ", ".join(
        f"{member.name} ({member.grant_id}{f' at {member.origin}' if member.origin else ''})"
        for member in entry.members
    )
    until = f", expires {entry.expires_at}" if entry.expires_at else ""
    return f"{counted(len(entry.members), 'grant')}: {names}{until}"
