"""Suggests alternatives to requests that an upstream refuses."""

from typing import Any

from evidence.model import Continuation, known, members
from evidence.errors import EvidenceError, Forbidden, InvalidRequest, NotFound
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from service.ports import AggregateQuery, Filter, RecordQuery, SchemaQuery, SearchQuery

NO_FILTER = (
    "This source does not accept the argument `filter` from your token. Use search, or list "
    "without `filter` and select the records yourself."
)
NO_VIEW = "This source does not accept the argument `view` from your token. Use `fields` instead."
NO_EXPAND = (
    "This source does not accept the argument `expand` from your token. List the related stream "
    "with query_records instead."
)

#: The warning that the `words` of a search were not sent to a source.
WORDS = {
    "code": "unsupported_by_source",
    "message": "This source does not support the argument `words`; it uses its own matching. "
    "Put quotes around words that must be adjacent, and check the excerpts.",
    "param": "words",
}
_WITHOUT = {
    "since": "Leave it out, and check the times of the hits",
    "until": "Leave it out, and check the times of the hits",
    "sort": "Leave it out; hits are returned in the source's order",
}


def of_argument(name: str, query: SearchQuery) -> InvalidRequest:
    """Refuse a search argument that a source does not declare; suggest the call without it."""
    arguments = {
        argument: list(value) if isinstance(value, tuple) else value
        for argument, value in query.identity().items()
        if argument != name
    }
    return InvalidRequest(
        f"This source does not support the argument `{name}` in searches.",
        code="unsupported_by_source",
        param=name,
        hint=_WITHOUT.get(name, "Leave it out")
        + ". You can also list the stream with query_records, sorted or filtered by a time field.",
        calls=(Continuation("search", arguments, f"without_{name}"),),
    )


def of_list(error: EvidenceError, query: RecordQuery) -> EvidenceError:
    """The same error with an alternative to filter, view or expand."""
    refused = _refused(error, filter=query.filter, view=query.view, expand=query.expand)
    if refused is None:
        return error
    plain = known({**members(query, "stream", "connection_id"), "fields": [*query.fields] or None})
    error.hint = {"filter": NO_FILTER, "view": NO_VIEW, "expand": NO_EXPAND}[refused]
    if refused == "filter":
        error.calls = (*_searches(query), Continuation("query_records", plain, "without_filter"))
    elif refused == "view":
        error.calls = (Continuation("schema", {"stream": query.stream}, "fields"),)
    else:
        error.calls = (Continuation("query_records", plain, "without_expand"),)
    return error


def of_record(error: EvidenceError, ref: RecordRef, expand: tuple[str, ...]) -> EvidenceError:
    """The same for one record."""
    if _refused(error, expand=expand):
        error.hint = NO_EXPAND
        error.calls = (Continuation("fetch", {"id": str(ref)}, "without_expand"),)
    return error


def of_aggregate(error: EvidenceError, query: AggregateQuery) -> EvidenceError:
    """The same for an aggregate, whose groups PDPP only counts."""
    if (query.group_by or query.group_by_time) and query.metric != "count":
        if _refused(error, metric=query.metric):
            error.code = "unsupported_by_source"
            error.hint = (
                "This source computes groups only with metric=count. For other metrics, filter by "
                "one group at a time."
            )
            return error
    return of_filter(error, query.filter)


def of_filter(error: EvidenceError, conditions: Filter) -> EvidenceError:
    """The same for a search or an aggregate with a filter."""
    if _refused(error, filter=conditions):
        error.hint = (
            "This source does not accept the argument `filter` from your token. Leave it out. "
            "To narrow a search, use more words, streams or connection_id."
        )
    return error


def nothing_there(query: SchemaQuery) -> EvidenceError:
    """The error for servers that return an empty schema for an unknown name."""
    calls = (Continuation("schema", {}, "streams"),)
    if query.stream is not None:
        return Forbidden(
            f"The stream {query.stream!r} is not in this grant. Call schema to list the granted "
            "streams.",
            code="grant_stream_not_allowed",
            param="stream",
            calls=calls,
        )
    return NotFound(
        f"The connection {query.connection_id!r} is not in this grant. Call schema to list the "
        "granted connections.",
        code="connection_not_found",
        param="connection_id",
        calls=calls,
    )


def first_match_only(ref: RecordRef, field_path: str, window: dict[str, Any]) -> InvalidRequest:
    """The error for servers that ignore `match` and return the first match again."""
    start = window.get("match_end_chars") or window.get("end_chars")
    args = {"id": str(ref), "field_path": field_path, "offset_chars": start}
    return InvalidRequest(
        "This source returns only the first match. Continue from there with offset_chars.",
        code="invalid_window",
        param="match",
        calls=(Continuation("read_record_field", args, "after_first_match"),),
    )


def _refused(error: EvidenceError, **arguments: Any) -> str | None:
    """The given argument that the error is about."""
    if not isinstance(error, InvalidRequest) or error.code != "invalid_request":
        return None
    param = str(error.details.get("param") or "")
    for name in [name for name, value in arguments.items() if value]:
        if param.startswith(name) or (not param and _names_argument(error, name)):
            return name
    return None


def _names_argument(error: EvidenceError, name: str) -> bool:
    """True for `view`, `views`, `filter[...]`, `expand[]`, but not for longer words."""
    words = error.message.lower().replace("[", " ").split()
    return any(word.strip(".,;:`'\"") in (name, f"{name}s") for word in words)


def _searches(query: RecordQuery) -> tuple[Continuation, ...]:
    """A search for the first text of the filter."""
    texts = [value for value in query.filter.values() if isinstance(value, str) and value]
    if not texts or len(texts[0]) > CONTRACT.query_chars:
        return ()
    args = {"query": texts[0], "streams": [query.stream], "connection_id": query.connection_id}
    return (Continuation("search", known(args), "search"),)
