"""The reports on sources that did not answer, with what to do."""

from collections.abc import Iterable, Sequence
from typing import Any

from evidence.errors import EvidenceError, TimedOut
from evidence.hits import SourceReport
from evidence.limits import BUDGETS
from evidence.text import clip
from service.sources.remote.origin import RENEW
from service.sources.package.cursor import LOST
from service.sources.package.membership import Child
from service.sources.package.merge import SourceReader

LATER = "Try again later."
NEXT_PAGE = "The next page queries it again."
ITSELF = "Retry with the connection_id of this source to see its error."
_STEPS = {"unauthenticated": RENEW, "forbidden": RENEW, "invalid": ITSELF, "too_large": ITSELF}


def sources(readers: Sequence[SourceReader]) -> list[SourceReport]:
    """One report for each source that was asked, or is not asked any more."""
    return [_row(r) for r in readers if r.asked or r.progress.state == LOST]


def failure(child: Child, error: EvidenceError | None) -> dict[str, Any]:
    """The warning of a source that is missing from a list; without an error it was late."""
    row = _why(error)
    what = "does not answer in time" if error is None else f"fails ({row['code']})"
    message = f"{child.name} {what}. {row['next_step']}"
    return {
        "code": "source_unavailable",
        "message": clip(message, BUDGETS.message_chars),
        "grant_id": child.grant_id,
    }


def first_error(errors: Iterable[EvidenceError | None]) -> EvidenceError:
    """The error if no source answers: the first one, or that all were late."""
    late = TimedOut("No source of this package answered in time. Try again later.")
    return next((error for error in errors if error is not None), late)


def stuck(child: Child) -> dict[str, Any]:
    """The warning of a source that has more hits but no cursor to them."""
    message = (
        f"{child.name} has more hits but no next page. Narrow the query, or search only this "
        "source."
    )
    return {
        "code": "partial_results",
        "message": clip(message, BUDGETS.message_chars),
        "grant_id": child.grant_id,
    }


def _row(reader: SourceReader) -> SourceReport:
    lost, child = reader.progress.state == LOST, reader.child
    name = clip(child.name, BUDGETS.message_chars)
    if not lost and not reader.failed:
        return SourceReport(name, "answered", reader.shown, child.grant_id)
    late = reader.late or isinstance(reader.error, TimedOut)
    why = _why(reader.error) if reader.failed else {"code": "given_up", "next_step": LATER}
    if not lost:
        why["next_step"] = NEXT_PAGE
    state = "timed_out" if late else "failed"
    return SourceReport(name, state, reader.shown, child.grant_id, **why)


def _why(error: EvidenceError | None) -> dict[str, str | None]:
    """Code, message and next step of a source that did not answer."""
    if error is None:
        return {"code": "deadline_exceeded", "next_step": LATER}
    return {
        "code": error.code,
        "message": clip(error.message, BUDGETS.title_chars),
        "next_step": _STEPS.get(error.kind, LATER),
    }
