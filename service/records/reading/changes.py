"""`changes_since`: the changes of a stream, as the grant shows them, in chronological order.

A record appears once, at its newest change to a granted field. A change of only hidden fields never
shows, not even through the order or a bookmark. A bookmark is the position of the last visible
change, with the epoch of its commit.

Under a limit of times, a record that leaves it looks deleted, and one that enters it looks changed.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from evidence.errors import Gone, InvalidRequest
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.model import Continuation
from evidence.records import Record, RecordPage
from service.records.engine.change_log import EPOCH_CHARS, Change, RecordState
from service.records.engine import Snapshot
from service.records.engine.selections import Limit
from service.keys import Identity, Sealer, identity
from service.ports import RecordQuery
from service.records.reading import lists
from service.records.view.documents import GrantedRecord
from service.records.view import View
from service.records.view.streams import StreamView

BEGINNING = "beginning"
# Tells a cursor of changes from one of a list, so that a session goes on with the cursor alone.
CURSOR_PREFIX = "c."
#: Digits of a version in a bookmark.
_DIGITS: Final = 19
_REFUSED = ("filter", "sort", "view", "expand", "expand_limit")


def list_changes(snapshot: Snapshot, view: View, query: RecordQuery, sealer: Sealer) -> RecordPage:
    """A page of changes after a bookmark, with `next_changes_since` on every page."""
    _refuse_arguments(query)
    streams = view.stream(query.stream, query.connection_id)
    projections = {stream.id: stream.project(query.fields) for stream in streams}
    bound = identity(query, "changes", view.grant.grant_id, further=[query.fields])
    start = _start(snapshot, query, sealer, bound)
    page: list[Record] = []
    position, follows, size = start, False, 0
    for event in _visible(snapshot, streams, projections, start):
        if event.newest:
            change = _change(snapshot, view, event, projections[event.stream.id], query.whole)
            size += lists.body_bytes(change)
            if len(page) == query.limit or (page and size > BUDGETS.rest_page_bytes):
                follows = True
                break
            page.append(change)
        position = event.change.version
    # Its length does not reveal how much else there is.
    bookmark = f"{position:0{_DIGITS}}{snapshot.epoch(position) or '':0>{EPOCH_CHARS}}"
    return RecordPage(
        stream=query.stream,
        records=page,
        has_more=follows,
        next_changes_since=sealer.seal(bookmark, bound=bound),
        next_cursor=CURSOR_PREFIX + sealer.seal(bookmark, bound=bound) if follows else None,
    )


def _refuse_arguments(query: RecordQuery) -> None:
    names = [name for name in _REFUSED if getattr(query, name)]
    names += [name for name in ("count", "window") if getattr(query, name) != "none"]
    if names:
        raise InvalidRequest(
            f"changes_since cannot be combined with {', '.join(names)}. "
            "Combine it only with stream, fields, limit and connection_id.",
            code="invalid_expand" if names[0] == "expand" else "invalid_request",
            param=names[0],
        )


def _start(snapshot: Snapshot, query: RecordQuery, sealer: Sealer, bound: Identity) -> int:
    """The version after which the page starts; raises `Gone` if its commit was lost."""
    if query.cursor:
        text, param = query.cursor.removeprefix(CURSOR_PREFIX), "cursor"
    elif query.changes_since == BEGINNING:
        return 0
    else:
        text, param = query.changes_since or "", "changes_since"
    version, epoch = _decode_bookmark(snapshot, sealer, text, bound, param)
    if version and (epoch is None or snapshot.epoch(version) != epoch):
        args = {"stream": query.stream, "connection_id": query.connection_id}
        again = {name: value for name, value in args.items() if value}
        raise Gone(
            f"The change that this {param} refers to was lost when an older state of the store "
            "was restored.",
            hint="Read all changes again with changes_since=beginning, and delete your copies of "
            "records that those changes do not list.",
            param=param,
            calls=(
                Continuation("query_records", {**again, "changes_since": BEGINNING}, "start_over"),
            ),
        )
    return version


def _decode_bookmark(
    snapshot: Snapshot, sealer: Sealer, text: str, bound: Identity, param: str
) -> tuple[int, str | None]:
    """(version, epoch that its commit must have) of a bookmark; None if the commit was lost.

    Older versions of Rung wrote no epoch, and bound bookmarks to the last restore. The upgrade gave
    one epoch to all commits before it.
    """
    try:
        bookmark = sealer.open(text, bound=bound, param=param)
    except InvalidRequest:
        history = snapshot.meta("history")
        if not history:
            raise
        older = Identity([*binding, history] for binding in bound)
        bookmark, history = sealer.open(text, bound=older, param=param), None
    else:
        history = snapshot.meta("history") if len(bookmark) == _DIGITS else None
    return int(bookmark[:_DIGITS]), bookmark[_DIGITS:] or (None if history else snapshot.epoch(0))


class _Event(NamedTuple):
    """A change that the grant shows; `newest` of its record.

    `leaves`: the record is then not there any more, because it was deleted or left the limit.
    """

    change: Change
    stream: StreamView
    newest: bool
    leaves: bool


def _visible(
    snapshot: Snapshot,
    streams: Sequence[StreamView],
    projections: dict[int, tuple[str, ...]],
    start: int,
) -> Iterator[_Event]:
    """The changes after a version that the grant shows, in chronological order."""
    logs = (_log(snapshot, stream, start) for stream in streams)
    for change, stream in heapq.merge(*logs, key=lambda entry: entry[0].version):
        names, limit = frozenset(projections[stream.id]), stream.limit
        if not limit.is_timed and not change.touches(names):
            continue
        state = snapshot.state(change.seq)
        if limit.keys is not None and state.key not in limit.keys:
            continue
        later = list(snapshot.later_changes(change.seq, change.version))
        leaves, *later_effects = _effects(limit, names, [change, *later], state)
        if leaves is not None:
            newest = all(effect is None for effect in later_effects)
            yield _Event(change, stream, newest, leaves)


def _log(snapshot: Snapshot, stream: StreamView, start: int) -> Iterator[tuple[Change, StreamView]]:
    return ((change, stream) for change in snapshot.changes(stream.id, start))


def _effects(
    limit: Limit, names: frozenset[str], log: Sequence[Change], state: RecordState
) -> Iterator[bool | None]:
    """Whether the record leaves the limit with each change of its log; None if that is not shown.

    Where it was before a change of an older version of Rung is unknown. Such a change is shown if
    the record is inside now, or was when it was deleted.
    """
    deleted = state.deleted_at is not None
    for change, later in zip_longest(log, log[1:]):
        if change.was_at is None or not limit.is_timed:
            yield deleted if change.touches(names) and limit.spans(state.at) else None
            continue
        was_inside = limit.spans(change.was_at)
        inside = limit.spans(later.was_at) if later else limit.spans(state.at) and not deleted
        is_visible = was_inside != inside or (inside and change.touches(names))
        yield not inside if is_visible else None


def _change(
    snapshot: Snapshot, view: View, event: _Event, fields: tuple[str, ...], whole: bool
) -> Record:
    stream, change = event.stream, event.change
    if not event.leaves:
        granted = GrantedRecord(
            snapshot, view, stream, snapshot.load([change.seq]).get()[change.seq]
        )
        return granted.record((granted.whole if whole else granted.brief)(fields))
    key, _, deleted_at = snapshot.state(change.seq)
    ref = RecordRef(stream.name, key, stream.connection_id)
    left_at = change.left_at or deleted_at or ""
    return Record(ref, stream.origin, left_at, {}, deleted=True, deleted_at=left_at)
