"""Merges the descriptions of many sources, and reports the sources that did not answer."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from evidence.errors import EvidenceError, TimedOut
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Source, SourceReport, distinct
from evidence.schema import NAMED, Connector, StreamDetails, StreamRow, StreamSchema
from evidence.schema import joint_search
from evidence.text import clip
from evidence.work import Done, Failed, Outcome
from service.ports import Answer
from service.sources.package.cursor import LOST
from service.sources.package.membership import Child, Locations, StreamLocation, ambiguous
from service.sources.package.merge import SourceReader
from service.sources.remote.origin import RENEW

LATER = "Try again later."
NEXT_PAGE = "The next page queries this source again."
ITSELF = "Retry with the connection_id of this source to see its error."
_STEPS = {"unauthenticated": RENEW, "forbidden": RENEW, "invalid": ITSELF, "too_large": ITSELF}


def sources(readers: Sequence[SourceReader]) -> list[SourceReport]:
    """One report for each source that was asked or is no longer asked."""
    return [_row(r) for r in readers if r.queried or r.progress.state == LOST]


def failure(child: Child, error: EvidenceError | None) -> dict[str, Any]:
    """The warning for a source that is missing from a list; without an error it was late."""
    row = _why(error)
    what = "did not answer in time" if error is None else f"failed ({row['code']})"
    return _warning(child, "source_unavailable", f"{what}. {row['next_step']}")


def first_error(errors: Iterable[EvidenceError | None]) -> EvidenceError:
    """The error if no source answers: the first one, or a timeout if all were late."""
    late = TimedOut("No source of this package answered in time. Try again later.")
    return next((error for error in errors if error is not None), late)


def stuck(child: Child) -> dict[str, Any]:
    """The warning for a source that has more hits but no cursor to them."""
    advice = "Narrow the query, or search only this source."
    return _warning(child, "partial_results", f"has more hits but no next page. {advice}")


def _warning(child: Child, code: str, what: str) -> dict[str, Any]:
    message = clip(f"{child.name} {what}", BUDGETS.message_chars)
    return {"code": code, "message": message, "grant_id": child.grant_id}


def _row(reader: SourceReader) -> SourceReport:
    lost, child = reader.progress.state == LOST, reader.child
    name = clip(child.name, BUDGETS.message_chars)
    if not lost and not reader.failed:
        return SourceReport(name, "answered", reader.hit_count, child.grant_id)
    late = reader.late or isinstance(reader.error, TimedOut)
    why = _why(reader.error) if reader.failed else {"code": "given_up", "next_step": LATER}
    if not lost:
        why["next_step"] = NEXT_PAGE
    state = "timed_out" if late else "failed"
    return SourceReport(name, state, reader.hit_count, child.grant_id, **why)


def _why(error: EvidenceError | None) -> dict[str, str | None]:
    """The code, message and next step for a source that did not answer."""
    if error is None:
        return {"code": "deadline_exceeded", "next_step": LATER}
    return {
        "code": error.code,
        "message": clip(error.message, BUDGETS.title_chars),
        "next_step": _STEPS.get(error.kind, LATER),
    }


class Warned(Protocol):
    """A value with warnings."""

    @property
    def warnings(self) -> list[dict[str, Any]]: ...


V = TypeVar("V", bound=Warned)


class Gathered(Generic[V]):
    """The values of the children that answered, and warnings about the others.

    Raises the first error if none answered.
    """

    def __init__(self, children: Sequence[Child], outcomes: Sequence[Outcome[Answer[V]]]) -> None:
        self.values = [done.value.value for done in outcomes if isinstance(done, Done)]
        self.silent: list[Child] = []
        warnings = [warning for value in self.values for warning in value.warnings]
        errors: list[EvidenceError | None] = []
        for child, outcome in zip(children, outcomes):
            if not isinstance(outcome, Done):
                error = outcome.error if isinstance(outcome, Failed) else None
                errors.append(error)
                self.silent.append(child)
                warnings.append(failure(child, error))
        if not self.values:
            raise first_error(errors)
        self.warnings = distinct(warnings)[: CONTRACT.candidates]


def stream(gathered: Gathered[StreamDetails], locations: Locations) -> StreamDetails:
    """One stream that several children describe identically; 409 if they do not."""
    first, *rest = [details.row for details in gathered.values]
    if any(row.stream != first.stream for row in rest):
        raise ambiguous(locations)
    connections = tuple(source for row in (first, *rest) for source in row.connections)
    search = joint_search(row.stream for row in (first, *rest))
    row = StreamRow(replace(first.stream, search=search), first.connector_key, connections)
    return StreamDetails(row, gathered.warnings)


def by_membership(
    children: Sequence[Child], locations: Iterable[StreamLocation]
) -> list[Connector]:
    """The names of the children's streams and connections, known without a request."""
    silent = {id(child) for child in children}
    connectors = []
    for location in locations:
        if id(location.child) in silent:
            member, key = location.member, location.member.connector_key or ""
            source = Source(member.connection_id, member.connector_key, member.display_name or None)
            row = StreamRow(StreamSchema(member.stream, NAMED), key, (source,))
            connectors.append(Connector(key, key, key, (row,)))
    return connectors
