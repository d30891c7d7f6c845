"""`changes_since`: what changed in a stream, as the grant sees it, in the order it happened.

A record appears once, at its newest change that touches a granted field; a change of hidden
fields only never shows, not even as an order or a bookmark. A bookmark is the position of the
last change that counted.
"""

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.cursors import Sealer
from service.ports import RecordQuery
from service.records import documents, lists
from service.records.view import StreamView, View, limits

BEGINNING = "beginning"
# Tells a cursor of changes from one of a list, so that a session goes on with the cursor alone.
CURSOR_PREFIX = "c."
_REFUSED = ("filter", "sort", "view", "expand", "expand_limit")


def list_changes(
    db: sqlite3.Connection, view: View, query: RecordQuery, sealer: Sealer
) -> dict[str, Any]:
    """A page of changes after a bookmark, with `next_changes_since` on every page."""
    _refuse_others(query)
    streams = view.stream(query.stream, query.connection_id)
    projections = {stream.id: stream.project(query.fields) for stream in streams}
    bound = ["changes", view.grant.grant_id, query.stream, query.connection_id, query.fields]
    start = _start(query, sealer, bound)
    page: list[dict[str, Any]] = []
    position, more, size = start, False, 0
    for version, stream, seq, shown in _relevant(db, streams, projections, start):
        if shown:
            change = _change(db, view, stream, seq, projections[stream.id], query.whole)
            size += len(orjson.dumps(change))
            if len(page) == query.limit or (page and size > BUDGETS.rest_page_bytes):
                more = True
                break
            page.append(change)
        position = version
    body: dict[str, Any] = {
        "object": "list",
        "url": f"/v1/streams/{query.stream}/records",
        "has_more": more,
        "data": page,
        "next_changes_since": sealer.seal(_place(position), bound=bound),
        "meta": {"count": {"kind": "none"}, "warnings": []},
    }
    if more:
        body["next_cursor"] = CURSOR_PREFIX + sealer.seal(_place(position), bound=bound)
    return body


def asked(query: RecordQuery) -> bool:
    """Whether a query is about changes."""
    return bool(query.changes_since) or (query.cursor or "").startswith(CURSOR_PREFIX)


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


def _place(position: int) -> str:
    """A position of fixed length, so that a bookmark does not tell how much else there is."""
    return f"{position:019}"


def _relevant(
    db: sqlite3.Connection,
    streams: Sequence[StreamView],
    projections: dict[int, tuple[str, ...]],
    start: int,
) -> Iterator[tuple[int, StreamView, int, bool]]:
    """(version, stream, seq, is this the record's newest) of every change that counts."""
    logs = [_log(db, stream, start) for stream in streams]
    for version, _, stream, seq, fields in heapq.merge(*logs):
        names = frozenset(projections[stream.id])
        if not _touches(fields, names) or not _visible(db, stream, seq):
            continue
        later = db.execute(
            "SELECT fields FROM change WHERE seq = ? AND version > ?", (seq, version)
        )
        yield version, stream, seq, not any(_touches(other, names) for (other,) in later)


def _log(
    db: sqlite3.Connection, stream: StreamView, start: int
) -> Iterator[tuple[int, int, StreamView, int, str | None]]:
    rows = db.execute(
        "SELECT version, seq, fields FROM change WHERE stream = ? AND version > ? ORDER BY version",
        (stream.id, start),
    )
    return ((version, stream.id, stream, seq, fields) for version, seq, fields in rows)


def _touches(fields: str | None, names: frozenset[str]) -> bool:
    return fields is None or not names.isdisjoint(orjson.loads(fields))


def _visible(db: sqlite3.Connection, stream: StreamView, seq: int) -> bool:
    clause, values = limits(stream)
    row = db.execute(f"SELECT 1 FROM record r WHERE r.seq = ? AND {clause}", (seq, *values))
    return row.fetchone() is not None


def _change(
    db: sqlite3.Connection,
    view: View,
    stream: StreamView,
    seq: int,
    fields: tuple[str, ...],
    whole: bool,
) -> dict[str, Any]:
    stored = documents.load(db, [seq]).get(seq)
    if stored is not None:
        show = documents.show_over_rest if whole else documents.show
        return {**lists.describe(stream, stored), "data": show(db, view, stream, stored, fields)}
    key, deleted_at = db.execute(
        "SELECT r.record_key, t.deleted_at FROM record r JOIN tombstone t USING (seq) "
        "WHERE r.seq = ?",
        (seq,),
    ).fetchone()
    return {
        "object": "record",
        "id": key,
        "stream": stream.name,
        "deleted": True,
        "deleted_at": deleted_at,
        "emitted_at": deleted_at,
        **stream.source,
    }
