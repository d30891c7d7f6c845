"""The streams of each child of a package, known without a request: grants do not change.

The refusals are those of a single grant, word for word: a package is one token to its reader.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from evidence.model import Continuation
from evidence.errors import Ambiguous, Forbidden, NotFound
from evidence.limits import CONTRACT
from evidence.work import Deadline
from service.ports import Held, ResourceServer


@dataclass(frozen=True, slots=True)
class Child:
    """One grant of a package.

    `open` gives its resource server, which never waits past the deadline, or raises the error
    of opening it.
    """

    name: str
    grant_id: str
    held: tuple[Held, ...]
    open: Callable[[Deadline], ResourceServer]


@dataclass(frozen=True, slots=True)
class Place:
    """One stream of one connection, and the child that holds it."""

    child: Child
    held: Held

    @property
    def connection(self) -> tuple[str, str]:
        """The identity of a candidate."""
        return self.child.grant_id, self.held.connection_id

    def candidate(self) -> dict[str, Any]:
        """One entry of `available_connections`."""
        known = {
            "grant_id": self.child.grant_id,
            "connector_key": self.held.connector_key,
            "connection_id": self.held.connection_id,
            "display_name": self.held.display_name,
        }
        return {name: value for name, value in known.items() if value is not None}


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
            known = sorted({place.held.connection_id for place in self.places})
            raise NotFound(
                f"No connection {connection_id!r} in this grant. Call schema for the connections.",
                code="connection_not_found",
                param="connection_id",
                did_you_mean=get_close_matches(connection_id, known, n=3) or None,
            )
        return places

    def stream(
        self, name: str, connection_id: str | None = None, *, param: str = "stream"
    ) -> tuple[Place, ...]:
        """The places of one stream; 403 `grant_stream_not_allowed` where nobody holds it."""
        places = self.within(connection_id)
        holders = tuple(place for place in places if place.held.stream == name)
        if not holders:
            known = sorted({place.held.stream for place in places})
            raise Forbidden(
                f"The stream {name!r} is not in this grant. Call schema for the granted streams.",
                code="grant_stream_not_allowed",
                param=param,
                did_you_mean=get_close_matches(name, known, n=3) or None,
            )
        return holders


def children_of(places: Iterable[Place]) -> list[Child]:
    """Each child once, in order."""
    return list({id(place.child): place.child for place in places}.values())


def ambiguous(places: Sequence[Place]) -> Ambiguous:
    """The 409 that lists the connections to choose from, twelve at most, and the call of all."""
    return Ambiguous(
        "Several connections match. Retry with one connection_id of available_connections.",
        retry_with="connection_id",
        calls=(Continuation("schema", {}, "all_connections"),),
        **_candidates(places),
    )


def ambiguous_detail(places: Sequence[Place]) -> Ambiguous:
    """The same for `schema` in full, which is about one connection."""
    candidates = _candidates(places)
    for entry in candidates["available_connections"]:
        entry["stream"] = places[0].held.stream
    return Ambiguous(
        f"{candidates['available_connection_count']} connections have the stream "
        f"{places[0].held.stream!r}. Retry with one connection_id (at most "
        f"{CONTRACT.candidates} are listed).",
        code="ambiguous_schema_detail",
        retry_with="connection_id",
        calls=(Continuation("schema", {}, "all_connections"),),
        **candidates,
    )


def _candidates(places: Sequence[Place]) -> dict[str, Any]:
    listed = list({place.connection: place.candidate() for place in places}.values())
    return {
        "available_connections": listed[: CONTRACT.candidates],
        "available_connection_count": len(listed),
    }
