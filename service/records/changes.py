"""`changes_since`: the changes of a stream, as the grant shows them, in chronological order.

A record appears once, at its newest change to a granted field. A change of only hidden fields never
shows, not even through the order or a bookmark. A bookmark is the position of the last visible
change.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from evidence.errors import InvalidRequest
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.records import Record, RecordPage
from service.records.engine import Change, Snapshot
from service.keys import Sealer, identity
from service.ports import RecordQuery
from service.records import lists
from service.records.documents import Shown
from service.records.view import StreamView, View

BEGINNING = "beginning"
# Tells a cursor of changes from one of a list, so that a session goes on with the cursor alone.
CURSOR_PREFIX = "c."
_REFUSED = ("filter", "sort", "view", "expand", "expand_limit")


def list_changes(snapshot: Snapshot, view: View, query: RecordQuery, sealer: Sealer) -> RecordPage:
    """A page of changes after a bookmark, with `next_changes_since` on every page."""
    _refuse_others(query)
    streams = view.stream(query.stream, query.connection_id)
    projections = {stream.id: stream.project(query.fields) for stream in streams}
    bound = ["changes", view.grant.grant_id, *identity(query), query.fields]
    if history := snapshot.meta("history"):  # a backup was restored: versions start over
        bound.append(history)
    start = _start(query, sealer, bound)
    page: list[Record] = []
    position, more, size = start, False, 0
    for version, stream, seq, shown in _relevant(snapshot, streams, projections, start):
        if shown:
            change = _change(snapshot, view, stream, seq, projections[stream.id], query.whole)
            size += lists.body_bytes(change)
            if len(page) == query.limit or (page and size > BUDGETS.rest_page_bytes):
                more = True
                break
            page.append(change)
        position = version
    place = f"{position:019}"  # its length does not reveal how much else there is
    return RecordPage(
        stream=query.stream,
        records=page,
        has_more=more,
        next_changes_since=sealer.seal(place, bound=bound),
        next_cursor=CURSOR_PREFIX + sealer.seal(place, bound=bound) if more else None,
    )


def _refuse_others(query: RecordQuery) -> None:
    given = [name for name in _REFUSED if getattr(query, name)]
    given += [name for name in ("count", "window") if getattr(query, name) != "none"]
    if given:
        raise InvalidRequest(
            f"changes_since cannot be combined with {', '.join(given)}. "
            "Retry with stream, fields, limit and connection_id only.",
            code="invalid_expand" if given[0] == "expand" else "invalid_request",
            param=given[0],
        )


def _start(query: RecordQuery, sealer: Sealer, bound: list[Any]) -> int:
    if query.cursor:
        return int(sealer.open(query.cursor.removeprefix(CURSOR_PREFIX), bound=bound))
    if query.changes_since == BEGINNING:
        return 0
    return int(sealer.open(query.changes_since or "", bound=bound, param="changes_since"))


def _relevant(
    snapshot: Snapshot,
    streams: Sequence[StreamView],
    projections: dict[int, tuple[str, ...]],
    start: int,
) -> Iterator[tuple[int, StreamView, int, bool]]:
    """(version, stream, seq, whether it is the record's newest) of every visible change."""
    logs = (_log(snapshot, stream, start) for stream in streams)
    for change, stream in heapq.merge(*logs, key=lambda one: one[0].version):
        names, seq = frozenset(projections[stream.id]), change.seq
        if not change.touches(names) or not snapshot.shows(stream.selection(), seq):
            continue
        later = snapshot.later_changes(seq, change.version)
        yield change.version, stream, seq, not any(other.touches(names) for other in later)


def _log(snapshot: Snapshot, stream: StreamView, start: int) -> Iterator[tuple[Change, StreamView]]:
    return ((change, stream) for change in snapshot.changes(stream.id, start))


def _change(
    snapshot: Snapshot,
    view: View,
    stream: StreamView,
    seq: int,
    fields: tuple[str, ...],
    whole: bool,
) -> Record:
    stored = snapshot.load([seq]).get(seq)
    if stored is not None:
        shown = Shown(snapshot, view, stream, stored)
        return shown.record((shown.whole if whole else shown.brief)(fields))
    key, deleted_at = snapshot.deleted(seq)
    ref = RecordRef(stream.name, key, stream.connection_id)
    return Record(ref, stream.origin, deleted_at, {}, deleted=True, deleted_at=deleted_at)
