"""Which grants do not cover what is in a connection, and the command that makes one that does."""

import shlex
from collections.abc import Sequence

import click

from evidence.limits import BUDGETS
from service.access.registry import Grant, Registry
from service.cli.output import say
from service.cli.store import clock
from service.records.manifest import StreamManifest
from service.records.streams import manifests_of
from service.records.writing import Writing


def report(writer: Writing, connection_id: str) -> None:
    """Prints the active grants that do not cover all of a connection, each with a command."""
    manifests = manifests_of(writer, connection_id)
    now = clock(click.get_current_context().params["store"])
    grants = [one for one in Registry(writer).grants() if one.state(now) == "active"]
    labels = {one.label for one in grants}
    lacking = [(one, lacks) for one in grants if (lacks := _lacking(one, connection_id, manifests))]
    for grant, lacks in lacking[: BUDGETS.names_shown]:
        names = [*_others(writer, grant, connection_id), connection_id]
        number, label = 2, grant.label
        while label in labels and label is not None:
            number, label = number + 1, f"{grant.label} {number}"
        title = f"{grant.label!r} ({grant.grant_id})" if grant.label else grant.grant_id
        say(f"Grant {title} does not cover {lacks}. {_command(names, label)}")
    if len(lacking) > BUDGETS.names_shown:
        say(f"… nor do {len(lacking) - BUDGETS.names_shown} more. See them with: rung grant list.")
    if not grants and manifests:
        say(f"No active grant covers {connection_id}. {_command([connection_id], None)}")


def _lacking(grant: Grant, connection_id: str, manifests: Sequence[StreamManifest]) -> str | None:
    """What a grant does not cover of a connection, in words."""
    covered = {one.stream: one for one in grant.streams if one.connection_id == connection_id}
    if not covered:
        return connection_id
    parts = []
    for manifest in manifests:
        name = f"{connection_id}/{manifest.name}"
        if manifest.name not in covered:
            parts.append(name)
        elif fields := sorted(manifest.fields.keys() - set(covered[manifest.name].fields)):
            more = ", …" if len(fields) > BUDGETS.names_shown else ""
            parts.append(f"{', '.join(fields[: BUDGETS.names_shown])}{more} of {name}")
    return "; ".join(parts[: BUDGETS.names_shown]) or None


def _others(writer: Writing, grant: Grant, connection_id: str) -> list[str]:
    """The other connections of a grant; none if it is narrower than these, or has limits."""
    covered: dict[str, set[tuple[str, str]]] = {}
    for one in grant.streams:
        if one.since is not None or one.until is not None or one.resources is not None:
            return []
        fields = covered.setdefault(one.connection_id, set())
        fields.update((one.stream, field) for field in one.fields)
    covered.pop(connection_id, None)
    whole = all(
        (manifest.name, field) in fields
        for name, fields in covered.items()
        for manifest in manifests_of(writer, name)
        for field in manifest.fields
    )
    return list(covered) if whole else []


def _command(connections: Sequence[str], label: str | None) -> str:
    """The command that makes a grant, after a few words on it."""
    words = ["rung", "grant", "create"]
    for name in connections:
        words += ["--connection", name]
    words += ["--label", label] if label else []
    context = click.get_current_context()
    if context.get_parameter_source("store") is click.core.ParameterSource.COMMANDLINE:
        words += ["--store", str(context.params["store"])]
    return f"For a token that does: {shlex.join(words)}"
