"""The streams of each child of a package, known without a request: grants do not change."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evidence.model import known, members
from evidence.errors import Ambiguous
from evidence.work import Deadline
from service import port_rules
from service.port_rules import unknown_connection, unknown_stream
from service.ports import MemberStream, ResourceServer


@dataclass(frozen=True, slots=True)
class Child:
    """One grant of a package.

    `open` returns its resource server, which never waits past the deadline, or raises the error of
    opening it.
    """

    name: str
    grant_id: str
    held: tuple[MemberStream, ...]
    open: Callable[[Deadline], ResourceServer]


@dataclass(frozen=True, slots=True)
class Place:
    """One stream of one connection, and the child that has it."""

    child: Child
    held: MemberStream

    @property
    def connection(self) -> tuple[str, str]:
        """The identity of a candidate."""
        return self.child.grant_id, self.held.connection_id

    def candidate(self) -> dict[str, Any]:
        """One entry of `available_connections`."""
        about = members(self.held, "connector_key", "connection_id", "display_name")
        return known({"grant_id": self.child.grant_id, **about})


class Membership:
    """Every place of a package, in the order of its children."""

    def __init__(self, children: Sequence[Child]) -> None:
        self.children = tuple(children)
        self.places = tuple(Place(child, held) for child in children for held in child.held)

    def within(self, connection_id: str | None) -> tuple[Place, ...]:
        """The places of one connection, or all; 404 `connection_not_found` for any other name."""
        if connection_id is None:
            return self.places
        places = tuple(p for p in self.places if p.held.connection_id == connection_id)
        if not places:
            known = (place.held.connection_id for place in self.places)
            raise unknown_connection(connection_id, known)
        return places

    def stream(
        self, name: str, connection_id: str | None = None, *, param: str = "stream"
    ) -> tuple[Place, ...]:
        """The places of one stream; 403 `grant_stream_not_allowed` if no child has it."""
        places = self.within(connection_id)
        holders = tuple(place for place in places if place.held.stream == name)
        if not holders:
            elsewhere = [p.held.connection_id for p in self.places if p.held.stream == name]
            raise unknown_stream(name, (p.held.stream for p in places), elsewhere, param)
        return holders


def children_of(places: Iterable[Place]) -> list[Child]:
    """Each child once, in order."""
    return list({id(place.child): place.child for place in places}.values())


def ambiguous(places: Sequence[Place], *, stream: str | None = None) -> Ambiguous:
    """The 409 that lists the connections to choose from; see `port_rules.ambiguous`."""
    listed = list({place.connection: place.candidate() for place in places}.values())
    return port_rules.ambiguous(listed, stream=stream, always=True)
