"""Merges the descriptions of many sources; those that do not answer are listed by name."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from evidence.errors import EvidenceError
from evidence.limits import CONTRACT
from evidence.model import Source, distinct
from evidence.schema import NAMED, Connector, StreamDetails, StreamRow, StreamSchema
from evidence.work import Done, Failed, Outcome
from service.ports import Answer
from service.sources.package import reports
from service.sources.package.membership import Child, Place, ambiguous


class Warned(Protocol):
    """A value with warnings."""

    @property
    def warnings(self) -> list[dict[str, Any]]: ...


V = TypeVar("V", bound=Warned)


class Gathered(Generic[V]):
    """The values of those children that answered, and warnings of the others.

    Raises the first error if none answered.
    """

    def __init__(self, children: Sequence[Child], outcomes: Sequence[Outcome[Answer[V]]]) -> None:
        self.values = [found.value.value for found in outcomes if isinstance(found, Done)]
        self.silent: list[Child] = []
        warnings = [warning for value in self.values for warning in value.warnings]
        errors: list[EvidenceError | None] = []
        for child, outcome in zip(children, outcomes):
            if not isinstance(outcome, Done):
                error = outcome.error if isinstance(outcome, Failed) else None
                errors.append(error)
                self.silent.append(child)
                warnings.append(reports.failure(child, error))
        if not self.values:
            raise reports.first_error(errors)
        self.warnings = distinct(warnings)[: CONTRACT.candidates]


def stream(gathered: Gathered[StreamDetails], places: Sequence[Place]) -> StreamDetails:
    """One stream that several children describe alike; 409 if they do not."""
    first, *others = [details.row for details in gathered.values]
    if any(other.stream != first.stream for other in others):
        raise ambiguous(places)
    listed = tuple(source for row in (first, *others) for source in row.connections)
    row = StreamRow(first.stream, first.connector_key, listed)
    return StreamDetails(row, gathered.warnings)


def by_membership(children: Sequence[Child], places: Iterable[Place]) -> list[Connector]:
    """The names of the streams and connections of children, known without a request."""
    silent = {id(child) for child in children}
    connectors = []
    for place in places:
        if id(place.child) in silent:
            held, key = place.held, place.held.connector_key or ""
            source = Source(held.connection_id, held.connector_key, held.display_name or None)
            row = StreamRow(StreamSchema(held.stream, NAMED), key, (source,))
            connectors.append(Connector(key, key, key, (row,)))
    return connectors
