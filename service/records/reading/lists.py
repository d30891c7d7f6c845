"""Lists and single records: one statement for all connections, keyset cursors, and projection."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson

from evidence.errors import EvidenceError, InvalidRequest, NotFound
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.records import Count, Record, RecordPage, TimeSpan
from evidence.work import checked
from service.records.engine import Order, Position, Row, Snapshot, Stored
from service.records.engine.selections import Selection
from service.keys import Sealer, identity
from service.pdpp.encode import encode_row
from service.ports import RecordQuery, RecordRead
from evidence.times import moment
from service.records.view import near_values
from service.records.view.documents import GrantedRecord, expand, relations
from service.records.view.choices import ambiguous, count, require_shared
from service.records.view.filters import tests_of
from service.records.view import View
from service.records.view.streams import StreamView, Streams


def list_records(snapshot: Snapshot, view: View, query: RecordQuery, sealer: Sealer) -> RecordPage:
    """A page of a stream: all granted connections merged, with one order, limit and cursor."""
    streams = view.stream(query.stream, query.connection_id)
    require_shared(view, streams, query.fields, "fields")
    require_shared(view, streams, query.filter, "filter")
    order = _order(streams, query.sort, query.order)
    projections = {stream.id: _projection(stream, query) for stream in streams}
    bound = identity(query, view.grant.grant_id)
    after = Position(*sealer.open(query.cursor, bound=bound)) if query.cursor else None
    selections = [entry.selection(tests_of(entry, query.filter)) for entry in streams]
    rows = snapshot.page(selections, order, after, query.limit + 1)

    page, follows = _page(snapshot, view, streams, rows, projections, query)
    counted = query.count != "none"
    cursor = sealer.seal(list(rows[len(page) - 1].position), bound=bound) if follows else None
    is_empty = not (page or query.cursor)
    return RecordPage(
        stream=query.stream,
        warnings=near_values.warnings(snapshot, streams, query.filter) if is_empty else [],
        records=page,
        has_more=follows,
        next_cursor=cursor,
        count=Count("exact", count(snapshot, selections)) if counted else Count(),
        span=_span(snapshot, streams, selections) if query.window == "exact" else None,
    )


def read_record(snapshot: Snapshot, view: View, ref: RecordRef, read: RecordRead) -> Record:
    """One record; 404 `not_found` if the grant does not show it, 409 if several match."""

    def suits(stream: StreamView) -> None:
        stream.project(read.fields)
        if read.expand:
            relations(view, stream, read.expand, read.expand_limit)

    stream, stored = find(snapshot, view, ref, suits)
    fields = stream.project(read.fields)
    granted = GrantedRecord(snapshot, view, stream, stored)
    show = granted.brief
    if read.whole:
        show = granted.in_full if read.fields else granted.whole
    related = {}
    if read.expand:
        related = expand(granted, read.expand, read.expand_limit)
    return replace(
        granted.record(show(fields)),
        source=stream.origin._replace(connector_key=stream.connector_key),
        roles={role: name for role, name in stream.roles.items() if name in fields},
        authored_at=stream.time(stored, frozenset(fields)) or None,
        expanded=related,
    )


def find(
    snapshot: Snapshot, view: View, ref: RecordRef, suits: Callable[[StreamView], None]
) -> tuple[StreamView, Stored]:
    """The granted stream of a visible record, and the record.

    If several have it, only those that `suits` accepts are suggested; if it refuses all, its first
    refusal is raised.
    """
    streams = view.stream(ref.stream, ref.connection_id)
    matches = [snapshot.find(stream.selection(), ref.record_id) for stream in streams]
    records = [(stream, match.get()) for stream, match in zip(streams, matches)]
    hits = [(stream, record) for stream, record in records if record is not None]
    if not hits:
        raise NotFound("No such record in this grant. Use search or query_records to find ids.")
    if len(hits) > 1:
        raise ambiguous(view, _suiting([stream for stream, _ in hits], suits))
    return hits[0]


def _suiting(streams: Streams, suits: Callable[[StreamView], None]) -> list[StreamView]:
    """The streams for which the call would work; raises the first refusal if there is none."""
    refusals, suitable = [], []
    for stream in streams:
        try:
            suits(stream)
        except EvidenceError as error:
            refusals.append(error)
        else:
            suitable.append(stream)
    if not suitable:
        raise refusals[0]
    return suitable


def body_bytes(record: Record) -> int:
    """The size of a record in a REST body."""
    return len(orjson.dumps(encode_row(record)))


def _order(streams: Streams, sort: str | None, order: str | None) -> Order:
    if sort is None:
        by_cursor = all(stream.sort_field for stream in streams)
        return Order(by_cursor, descending=by_cursor if order is None else order == "desc")
    field, descending = sort.removeprefix("-"), sort.startswith("-")
    if order is not None and (order == "desc") != descending:
        raise InvalidRequest(
            "sort and order conflict. Use only one of them.", code="invalid_sort", param="order"
        )
    for stream in streams:
        stream.require(field, param="sort")
        if field != stream.sort_field:
            works = f"-{stream.sort_field}" if stream.sort_field else None
            raise InvalidRequest(
                f"The stream {stream.name!r} cannot be sorted by {field!r}. "
                + (f"Retry with sort={works!r}." if works else "Leave out `sort`."),
                code="invalid_sort",
                param="sort",
                retry_arguments={"sort": works} if works else None,
            )
    return Order(True, descending)


def _projection(stream: StreamView, query: RecordQuery) -> tuple[str, ...]:
    if query.view is None:
        return stream.project(query.fields)
    if query.fields:
        raise InvalidRequest("Use fields or view, not both.", param="view")
    if query.view not in stream.views:
        names = ", ".join(sorted(stream.views)) or "none"
        raise InvalidRequest(
            f"The stream {stream.name!r} has no view {query.view!r}. Views: {names}.", param="view"
        )
    return stream.views[query.view].fields


def _page(
    snapshot: Snapshot,
    view: View,
    streams: Streams,
    fetched: Sequence[Row],
    projections: dict[int, tuple[str, ...]],
    query: RecordQuery,
) -> tuple[list[Record], bool]:
    """The records of a page and whether more follow; ends early above the byte budget."""
    rows = fetched[: query.limit]
    page: list[Record] = []
    size = 0
    records = checked(snapshot.each([row.seq for row in rows]), "reading records")
    for row, stored in zip(rows, records):
        stream = streams[row.position.selection]
        granted = GrantedRecord(snapshot, view, stream, stored)
        show = granted.whole if query.whole else granted.brief
        record = granted.record(show(projections[stream.id]))
        if query.expand:
            related = expand(granted, query.expand, query.expand_limit)
            record = replace(record, expanded=related)
        size += body_bytes(record) if query.whole or query.expand else stored.chars
        if page and size > BUDGETS.rest_page_bytes:
            return page, True
        page.append(record)
    return page, len(fetched) > query.limit


def _span(snapshot: Snapshot, streams: Streams, selections: Sequence[Selection]) -> TimeSpan:
    """The number of records on all pages and the times they span."""
    total, times = 0, list[int]()
    spans = [snapshot.span(selection) for selection in selections]
    for stream, span in zip(streams, spans):
        shows_time = stream.manifest.time_field in stream.granted
        counted, first, last = span.get()
        total += counted
        times += [at for at in (first, last) if shows_time and at is not None]
    ends = [moment(at) for at in (min(times), max(times))] if times else []
    return TimeSpan(total, *ends)
