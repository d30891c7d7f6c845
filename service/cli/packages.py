"""`rung package`: creates, lists and revokes packages, one token for several grants."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click

from evidence.limits import BUDGETS
from evidence.work import Deadline
from service import credentials, keys, settings
from service.place import Place
from service.cli.grants import expiry
from service.cli.source import PATH, store_option
from service.cli.output import say
from service.cli.store import clock, existing, teaching
from service.sources.remote.remote_authority import remote_member
from service.access.packages import create, local_member, revoke
from service.access.registry import Member, Package, Registry
from service.records.opening import open_reader
from service.records.writing import Writing


@click.group()
def package() -> None:
    """Create, list and revoke tokens for several grants."""


@package.command("create")
@click.option("--grant", "grants", multiple=True, help="A grant in this store, by id or label.")
@click.option("--remote", "urls", multiple=True, help="A PDPP resource server that issued a grant.")
@click.option(
    "--token-file",
    "files",
    multiple=True,
    type=PATH,
    help="A file that contains the token of that grant. Repeat it for each --remote, in the "
    "same order.",
)
@click.option("--expires", help="When the token expires: 12h, 30d, 8w or an ISO 8601 time.")
@click.option("--label", help="A name for listing and revoking it.")
@store_option
def create_(
    grants: tuple[str, ...],
    urls: tuple[str, ...],
    files: tuple[Path, ...],
    expires: str | None,
    label: str | None,
    store: Place,
) -> None:
    """Create a package of grants and print its token. The token is shown only once.

    Requests each server's grant once. Tokens of other servers are encrypted with
    RUNG_SECRET_KEY.
    """
    if len(urls) != len(files):
        raise click.UsageError("Pass one --token-file for each --remote, in the same order.")
    with teaching(), existing(store) as writer:
        registry = Registry(writer)
        with closing(open_reader(store)) as reader, reader.snapshot() as snapshot:
            members = [local_member(registry, snapshot, name) for name in grants]
        members += _remote_members(urls, files)
        ends = expiry(expires, datetime.now(UTC)) if expires else None
        sealer = keys.of_tokens(_secret(writer, kept=bool(urls)))
        package_id, token = create(registry, members, sealer, label=label, expires_at=ends)
        (entry,) = [found for found in registry.packages() if found.package_id == package_id]
    say(f"{package_id}: {_describe(entry)}. Keep the token; it is not shown again.")
    click.echo(token)


@package.command("list")
@store_option
def list_(store: Place) -> None:
    """List the packages. Tokens are not shown."""
    with teaching(), existing(store) as writer:
        entries, now = Registry(writer).packages(), clock(store)
    for entry in entries:
        label = f" {entry.label!r}" if entry.label else ""
        click.echo(f"{entry.package_id} {entry.state(now)}{label}: {_describe(entry)}")


@package.command("revoke")
@click.argument("name")
@store_option
def revoke_(name: str, store: Place) -> None:
    """Revoke the package with this id, or all packages with this label. The grants stay valid."""
    with teaching(), existing(store) as writer:
        for package_id in revoke(Registry(writer), name):
            click.echo(f"{package_id} revoked")


def _remote_members(urls: Sequence[str], files: Sequence[Path]) -> Iterator[Member]:
    for url, file in zip(urls, files):
        token = credentials.from_file(file)
        if warning := credentials.exposure(file):
            say(f"Warning: {warning}")
        deadline = Deadline.after(BUDGETS.upstream_seconds)
        yield remote_member(credentials.provider_url(url), token, deadline)


def _secret(writer: Writing, *, kept: bool) -> bytes:
    """The secret of the deployment: that of the environment, or the one kept in the store."""
    try:
        found = settings.load().secret_key
    except settings.SettingsError as error:
        raise click.ClickException(str(error)) from error
    if found is None and kept:
        say(
            "Warning: RUNG_SECRET_KEY is not set, so the key that encrypts these tokens is in "
            "the same store. Set it here and where the store is served."
        )
    return (found or str(writer.meta("secret"))).encode()


def _describe(entry: Package) -> str:
    names = ", ".join(
        f"{member.name} ({member.grant_id}{f' at {member.origin}' if member.origin else ''})"
        for member in entry.members
    )
    until = f", until {entry.expires_at}" if entry.expires_at else ""
    return f"{len(entry.members)} grants: {names}{until}"
