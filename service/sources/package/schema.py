"""One schema document from those of many children; who does not answer is listed by name."""

from collections.abc import Iterable, Sequence
from typing import Any

from evidence.envelope import Envelope
from evidence.errors import EvidenceError
from evidence.limits import CONTRACT
from service.pdpp.decode import rows, text_of, warnings_of, without
from evidence.work import Done, Failed, Outcome
from service.sources.package import reports
from service.sources.package.membership import Child, Place, ambiguous

Body = dict[str, Any]
_CONNECTIONS = "granted_connections"


class Gathered:
    """The bodies of those children that answered, and what is to be said of the others.

    Raises the first error where none did.
    """

    def __init__(self, children: Sequence[Child], outcomes: Sequence[Outcome[Envelope]]) -> None:
        self.bodies = [found.value.body for found in outcomes if isinstance(found, Done)]
        self.silent: list[Child] = []
        self.warnings = [found for body in self.bodies for found in warnings_of(body)]
        errors: list[EvidenceError | None] = []
        for child, outcome in zip(children, outcomes):
            if not isinstance(outcome, Done):
                error = outcome.error if isinstance(outcome, Failed) else None
                errors.append(error)
                self.silent.append(child)
                self.warnings.append(reports.failure(child, error))
        if not self.bodies:
            raise reports.first_error(errors)

    def listed(self, name: str) -> list[Body]:
        """The rows of all bodies under a name."""
        return [row for body in self.bodies for row in rows(body, name)]

    @property
    def meta(self) -> Body:
        warnings = [
            found for n, found in enumerate(self.warnings) if found not in self.warnings[:n]
        ]
        return {"count": {"kind": "none"}, "warnings": warnings[: CONTRACT.candidates]}


def document(gathered: Gathered, places: Iterable[Place], *, compact: bool) -> Body:
    """The schema document of a package, in the shape of a single grant's."""
    known = [*gathered.listed("connectors"), *by_membership(gathered.silent, places)]
    connectors = merged(known, compact=compact)
    return {
        "object": "schema",
        **({"detail": "compact"} if compact else {}),
        "bearer": {"scope": "package", "token_kind": "client"},
        "connectors": connectors,
        "connector_count": len(connectors),
        "stream_count": sum(connector["stream_count"] for connector in connectors),
        "meta": gathered.meta,
    }


def stream(gathered: Gathered, places: Sequence[Place]) -> Body:
    """One stream that several children hold alike; 409 where they do not."""
    first, *others = [_without_connections(body) for body in gathered.bodies]
    if any(other != first for other in others):
        raise ambiguous(places)
    listed = gathered.listed(_CONNECTIONS)
    return {**first, _CONNECTIONS: listed, "meta": gathered.meta}


def merged(connectors: Iterable[Body], *, compact: bool) -> list[Body]:
    """Connectors by key; streams of one description share a row that lists all connections."""
    grouped: dict[str, list[Body]] = {}
    for connector in connectors:
        key = text_of(connector, "connector_key", "connector_id") or ""
        grouped.setdefault(key, []).append(connector)
    return [_merge(grouped[key], compact) for key in sorted(grouped)]


def by_membership(children: Sequence[Child], places: Iterable[Place]) -> list[Body]:
    """What is known of children without asking: the names of their streams and connections."""
    silent = {id(child) for child in children}
    found = []
    for place in places:
        if id(place.child) in silent:
            held, key = place.held, place.held.connector_key or ""
            connection = {"connection_id": held.connection_id}
            if held.display_name:
                connection["display_name"] = held.display_name
            stream = {"object": "stream", "name": held.stream, _CONNECTIONS: [connection]}
            found.append(
                {
                    "object": "connector",
                    "source": {"id": key, "kind": "connector"},
                    "connector_key": key,
                    "connector_id": key,
                    "streams": [stream],
                }
            )
    return found


def _without_connections(body: Body) -> Body:
    return without(body, (_CONNECTIONS, "meta", "links"))


def _merge(connectors: Sequence[Body], compact: bool) -> Body:
    """One connector out of several of the same key."""
    found: list[tuple[Body, list[Body]]] = []
    for connector in connectors:
        shared = rows(connector, _CONNECTIONS)
        for stream in rows(connector, "streams"):
            row = without(stream, (_CONNECTIONS,))
            connections = rows(stream, _CONNECTIONS) or shared
            same = next((listed for known, listed in found if known == row), None)
            if same is None:
                found.append((row, list(connections)))
            else:
                same += [each for each in connections if each not in same]
    found.sort(key=lambda pair: text_of(pair[0], "name") or "")
    merged = without(connectors[0], (_CONNECTIONS,))
    merged["stream_count"] = len(found)
    common = max((listed for _, listed in found), key=len, default=[])
    if compact:
        merged[_CONNECTIONS] = common
    merged["streams"] = [
        row if compact and listed == common else {**row, _CONNECTIONS: listed}
        for row, listed in found
    ]
    return merged
