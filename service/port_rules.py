"""Rules for every source, so that packages and remote sources answer like a single grant."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import Any

from evidence.errors import Ambiguous, Forbidden, InvalidRequest, NotFound
from evidence.limits import CONTRACT
from evidence.model import Continuation
from evidence.records import FieldRead
from service.ports import WindowRequest


def unknown_connection(name: str, ids: Iterable[str]) -> NotFound:
    """404 `connection_not_found` with the nearest of the known ids."""
    return NotFound(
        f"This grant has no connection {name!r}. Call schema to list its connections.",
        code="connection_not_found",
        param="connection_id",
        did_you_mean=get_close_matches(name, sorted({*ids}), n=3) or None,
    )


def unknown_stream(
    name: str, streams: Iterable[str], elsewhere: Collection[str] = (), param: str = "stream"
) -> Forbidden:
    """403 `grant_stream_not_allowed` with the nearest of the known names.

    `elsewhere` are the other connections of the grant that have the stream.
    """
    if elsewhere:
        ids = sorted({*elsewhere})
        return Forbidden(
            f"This connection has no stream {name!r}. Use one of the connections in "
            "available_connections.",
            code="grant_stream_not_allowed",
            param=param,
            retry_with="connection_id",
            available_connections=[{"connection_id": id} for id in ids[: CONTRACT.candidates]],
            available_connection_count=len(ids),
        )
    return Forbidden(
        f"The stream {name!r} is not in this grant. Call schema to list the granted streams.",
        code="grant_stream_not_allowed",
        param=param,
        did_you_mean=get_close_matches(name, sorted({*streams}), n=3) or None,
    )


def ambiguous(
    candidates: Sequence[dict[str, Any]], *, stream: str | None = None, always: bool = False
) -> Ambiguous:
    """409 with at most twelve connections to choose from, and the call that lists all of them.

    With `stream` it is the call for the full schema, which describes one connection. `always` adds
    the call even if all are listed.
    """
    total, connections = len(candidates), candidates[: CONTRACT.candidates]
    message = "Several connections match. Retry with one connection_id from available_connections."
    if stream is not None:
        message = (
            f"{total} connections have the stream {stream!r}. Retry with a connection_id from "
            f"available_connections (at most {CONTRACT.candidates} are listed)."
        )
        connections = [{**candidate, "stream": stream} for candidate in connections]
    incomplete = always or total > len(connections)
    return Ambiguous(
        message,
        code="ambiguous_schema_detail" if stream is not None else None,
        retry_with="connection_id",
        calls=(Continuation("schema", {}, "all_connections"),) if incomplete else (),
        available_connections=connections,
        available_connection_count=total,
    )


def several_streams() -> InvalidRequest:
    """400 `invalid_filter` for a search with a filter but without a single stream."""
    return InvalidRequest(
        "A search with a filter needs exactly one stream. Retry with a single name in streams.",
        code="invalid_filter",
        param="filter",
        retry_with="streams",
    )


def no_value(name: str) -> NotFound:
    """404 `field_not_found` for a record without a field."""
    return NotFound(
        f"This record has no value for {name!r}. Call fetch to see its fields.",
        code="field_not_found",
        param="field_path",
    )


def window(
    read: FieldRead,
    request: WindowRequest,
    total: int,
    text: Callable[[int, int], str],
    places: Callable[[str], Iterator[tuple[int, int]]],
) -> FieldRead:
    """The read with the requested window of a text of `total` code points.

    `text` returns a range of it, `places` the matches of a query in order. Raises `NotFound`
    (`query_not_found`).
    """
    if request.query is None:
        start = min(request.offset_chars or 0, total)
        size = request.limit_chars or CONTRACT.window_chars
    else:
        number = min(request.match, total + 1)  # no text has more matches than characters
        matches = list(islice(places(request.query), number - 1, number + 1))
        if not matches:
            raise _no_match(request)
        begin, stop = matches[0]
        start = max(0, begin - (request.before_chars or 0))
        size = request.limit_chars or _context(request, stop - start)
        following = request.match + 1 if len(matches) > 1 else None
        read = replace(
            read, match_start=begin, match_end=stop, match=request.match, next_match=following
        )
    part = text(start, min(start + size, total))
    return replace(read, text=part, start=start, total=total, limit=size)


def _context(request: WindowRequest, until_match_end: int) -> int:
    if request.before_chars is None and request.after_chars is None:
        return CONTRACT.window_chars
    return min(until_match_end + (request.after_chars or 0), CONTRACT.window_chars_max)


def _no_match(request: WindowRequest) -> NotFound:
    message = "The query does not match this field. Try other words, or read with offset_chars."
    if request.match > 1:
        message = (
            f"This field has fewer than {request.match} matches for the query. Retry with a "
            "smaller value of `match`."
        )
    param = "match" if request.match > 1 else "query"
    return NotFound(message, code="query_not_found", param=param)
