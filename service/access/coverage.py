"""Finds the parts of a connection that active grants do not cover."""

from collections.abc import Sequence
from dataclasses import dataclass

from evidence.limits import BUDGETS
from evidence.manifest import StreamManifest
from service.access.registry import Grant, Registry


@dataclass(frozen=True, slots=True)
class Gap:
    """A grant and a description of what it `lacks`.

    A new grant of the `connections` with the `label`, which no other has, would cover it too.
    """

    grant: Grant
    lacks: str
    connections: tuple[str, ...]
    label: str | None


def gaps(
    registry: Registry,
    grants: Sequence[Grant],
    connection_id: str,
    manifests: Sequence[StreamManifest],
) -> list[Gap]:
    """The gaps of those grants that do not cover all of the streams of a connection."""
    labels = {grant.label for grant in grants}
    missing = [
        (grant, lacks) for grant in grants if (lacks := _lacking(grant, connection_id, manifests))
    ]
    return [
        Gap(
            grant,
            lacks,
            (*_siblings(registry, grant, connection_id), connection_id),
            _new_label(grant.label, labels),
        )
        for grant, lacks in missing
    ]


def _new_label(label: str | None, labels: set[str | None]) -> str | None:
    number, new = 2, label
    while new in labels and new is not None:
        number, new = number + 1, f"{label} {number}"
    return new


def _lacking(grant: Grant, connection_id: str, manifests: Sequence[StreamManifest]) -> str | None:
    """Describes what a grant does not cover of a connection."""
    covered = {
        stream.stream: stream for stream in grant.streams if stream.connection_id == connection_id
    }
    if not covered:
        return connection_id
    parts = []
    for manifest in manifests:
        name = f"{connection_id}/{manifest.name}"
        if manifest.name not in covered:
            parts.append(name)
        elif fields := sorted(manifest.fields.keys() - set(covered[manifest.name].fields)):
            ellipsis = ", …" if len(fields) > BUDGETS.names_shown else ""
            parts.append(f"{', '.join(fields[: BUDGETS.names_shown])}{ellipsis} of {name}")
    return "; ".join(parts[: BUDGETS.names_shown]) or None


def _siblings(registry: Registry, grant: Grant, connection_id: str) -> list[str]:
    """The other connections of a grant; none if it is narrower than these, or has limits."""
    names = dict.fromkeys(stream.connection_id for stream in grant.streams)
    siblings = [name for name in names if name != connection_id]
    narrow = any(_lacking(grant, name, registry.manifests(name)) for name in siblings)
    return [] if narrow or grant.is_limited else siblings
