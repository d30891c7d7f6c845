"""Describes streams to their owner: the fields, size, dates and newest titles of each stream."""

from dataclasses import dataclass

from evidence.text import clip
from service.access import packages
from service.access.registry import Grant, Member, RegistryReader, StreamGrant
from evidence.model import MemberStream
from service.records.engine import Order, Snapshot
from evidence.times import moment
from service.records.view import open_view
from service.records.view.streams import StreamView

TITLE_CHARS = 80
DATE_CHARS = 10
#: The id for the owner; ids of grants begin with `grt_`.
OWNER = "owner"


@dataclass(frozen=True, slots=True)
class StreamOverview:
    """One stream of one connection. `first` and `last` are the dates of its records, `changed` is
    that of the last import that changed any.

    If `timed`, a grant of the stream can be limited by time.
    """

    connection_id: str
    connection: str
    connector_key: str
    stream: str
    label: str
    fields: tuple[str, ...]
    timed: bool
    records: int
    first: str | None
    last: str | None
    changed: str
    samples: tuple[str, ...]


def overview(snapshot: Snapshot, samples: int) -> list[StreamOverview]:
    """Returns all streams by connection and name, each with the titles of its `samples` newest
    records."""
    view = open_view(snapshot, everything(snapshot))
    return [_described(snapshot, stream, samples) for stream in view.streams]


def everything(snapshot: Snapshot) -> Grant:
    """Returns the grant of the owner: all streams and fields, as the store has them now."""
    snapshot.confine(None)
    rows = ((key, snapshot.stream(*key)) for key in snapshot.names())
    streams = (StreamGrant(*key, tuple(row.manifest.fields)) for key, row in rows if row)
    return Grant(OWNER, None, tuple(streams))


def local_member(registry: RegistryReader, snapshot: Snapshot, name: str) -> Member:
    """The active grant of this store with this id or label, as a member of a package."""
    grant = packages.active_grant(registry, name)
    snapshot.confine(grant.connection_ids)
    rows = ((item, snapshot.stream(item.connection_id, item.stream)) for item in grant.streams)
    streams = tuple(
        MemberStream(item.stream, item.connection_id, row.connector_key, row.display_name)
        for item, row in rows
        if row is not None
    )
    return Member(grant.label or packages.name_of(streams), grant.grant_id, streams)


def _described(snapshot: Snapshot, stream: StreamView, samples: int) -> StreamOverview:
    selection = stream.selection()
    records, first, last = snapshot.span(selection).get()
    order = Order(by_cursor=stream.sort_field is not None, descending=True)
    seqs = [row.seq for row in snapshot.page([selection], order, None, samples)] if samples else []
    titles = (_title(stream, stored.data) for stored in snapshot.each(seqs))
    return StreamOverview(
        stream.connection_id,
        stream.display_name or stream.connection_id,
        stream.connector_key,
        stream.name,
        stream.manifest.label or stream.name,
        stream.fields,
        stream.manifest.time_field is not None,
        records,
        moment(first)[:DATE_CHARS] if first is not None else None,
        moment(last)[:DATE_CHARS] if last is not None else None,
        (snapshot.last_change(stream.id) or "")[:DATE_CHARS],
        tuple(title for title in titles if title),
    )


def _title(stream: StreamView, data: dict[str, object]) -> str:
    """The title of a record, or else its first text."""
    texts = [data.get(stream.title_field or ""), *data.values()]
    first_text = next((text for text in texts if isinstance(text, str)), "")
    return clip(" ".join(first_text.split()), TITLE_CHARS)
