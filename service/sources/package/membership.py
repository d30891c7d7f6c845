"""The streams of each member of a package, known without a request because grants never change."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evidence.model import known, members
from evidence.errors import Ambiguous
from evidence.work import Deadline
from service import port_rules
from service.port_rules import unknown_connection, unknown_stream
from evidence.model import MemberStream
from service.ports import ResourceServer


@dataclass(frozen=True, slots=True)
class Child:
    """One grant of a package.

    `open` returns its resource server, which never waits past the deadline, or raises the error of
    opening it.
    """

    name: str
    grant_id: str
    streams: tuple[MemberStream, ...]
    open: Callable[[Deadline], ResourceServer]


@dataclass(frozen=True, slots=True)
class StreamLocation:
    """One stream of one connection, and the child that has it."""

    child: Child
    member: MemberStream

    @property
    def connection(self) -> tuple[str, str]:
        """The identity of a candidate."""
        return self.child.grant_id, self.member.connection_id

    def candidate(self) -> dict[str, Any]:
        """One entry of `available_connections`."""
        about = members(self.member, "connector_key", "connection_id", "display_name")
        return known({"grant_id": self.child.grant_id, **about})


Locations = Sequence[StreamLocation]


class Membership:
    """Every location of a package, in the order of its children."""

    def __init__(self, children: Sequence[Child]) -> None:
        self.children = tuple(children)
        self.locations = tuple(
            StreamLocation(child, member) for child in children for member in child.streams
        )

    def within(self, connection_id: str | None) -> tuple[StreamLocation, ...]:
        """The locations of one connection, or all; 404 `connection_not_found` for another name."""
        if connection_id is None:
            return self.locations
        locations = tuple(p for p in self.locations if p.member.connection_id == connection_id)
        if not locations:
            names = (location.member.connection_id for location in self.locations)
            raise unknown_connection(connection_id, names)
        return locations

    def stream(
        self, name: str, connection_id: str | None = None, *, param: str = "stream"
    ) -> tuple[StreamLocation, ...]:
        """The locations of one stream; 403 `grant_stream_not_allowed` if no child has it."""
        locations = self.within(connection_id)
        holders = tuple(location for location in locations if location.member.stream == name)
        if not holders:
            elsewhere = [p.member.connection_id for p in self.locations if p.member.stream == name]
            raise unknown_stream(name, (p.member.stream for p in locations), elsewhere, param)
        return holders


def children_of(locations: Iterable[StreamLocation]) -> list[Child]:
    """Each child once, in order."""
    return list({id(location.child): location.child for location in locations}.values())


def ambiguous(locations: Locations, *, stream: str | None = None) -> Ambiguous:
    """The 409 that lists the connections to choose from; see `port_rules.ambiguous`."""
    candidates = list({entry.connection: entry.candidate() for entry in locations}.values())
    return port_rules.ambiguous(candidates, stream=stream, always=True)
