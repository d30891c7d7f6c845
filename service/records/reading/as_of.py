"""Adds to a page the list of its connections that are not up to date."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from evidence.hits import SearchPage
from evidence.model import Buckets, SyncStatus
from evidence.records import RecordPage
from service.ports import SearchQuery
from service.records.view import View
from service.records.view.streams import Streams

Statuses = Mapping[str, SyncStatus]
P = TypeVar("P", SearchPage, RecordPage, Buckets)


def dated(page: P, statuses: Statuses, streams: Callable[[], Streams]) -> P:
    """The page with those connections of its streams that are stale, the oldest first.

    `statuses` are by connection. `streams` is called only if one of them is stale.
    """
    stale = {id: sync for id, sync in statuses.items() if sync.is_stale}
    if not stale:
        return page
    sources = {stream.connection_id: stream.source for stream in streams()}
    oldest = sorted(stale.items(), key=lambda entry: entry[1].complete_until or "")
    as_of = [
        sources[id]._replace(connector_key=None, sync=sync) for id, sync in oldest if id in sources
    ]
    return replace(page, as_of=tuple(as_of))


def searched(view: View, query: SearchQuery) -> Streams:
    """The streams that a search is over."""
    streams = view.within(query.connection_id)
    return [stream for stream in streams if not query.streams or stream.name in query.streams]
