"""Sources of a package that answer from lists: correct pages and planned failures.

crowd = Crowd([Plan(hits=3), Plan(hits=5, outcomes=("late",))])
page = crowd.search(limit=4).value
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evidence.errors import Forbidden, InvalidRequest, Unavailable
from evidence.handles import RecordRef
from evidence.hits import SearchPage
from evidence.model import Buckets, Source
from evidence.records import FieldRead, Record, RecordPage
from evidence.schema import ConnectorList, Schema, StreamDetails, StreamList
from evidence.work import Deadline, Each, Outcome, Overdue, attempt, serial
from service.keys import Sealer
from service.pdpp.decode import schema
from service.pdpp.decode.records import decode_buckets
from service.pdpp.decode import search as decode
from service.pdpp.encode import body_of
from service.sources.package import Child, PackageResourceServer
from evidence.model import MemberStream
from service.ports import (
    AggregateQuery,
    Answer,
    Blob,
    RecordQuery,
    RecordRead,
    SchemaQuery,
    SearchQuery,
    WindowRequest,
)
from service.records.store import Store
from tests.helpers.worlds import House

T = TypeVar("T")
R = TypeVar("R")

QUERY = "lantern"
OK, LATE, DOWN, REVOKED = "ok", "late", "down", "revoked"
SEALER = Sealer(b"a secret of tests only")


@dataclass(frozen=True, slots=True)
class Plan:
    """One source: its number of hits and the outcomes of its first requests; later ones succeed.

    `most` is the longest page it gives, `cursor_chars` the length of its cursors. `keys` names its
    records otherwise than by number; `connection` shares the connection of another source. `more`
    is added to the hits, one each: coverage, excerpts, times. `meta` is added to that of its pages.
    On its first page, records named `related` follow, for which places are kept.
    """

    hits: int
    outcomes: tuple[str, ...] = ()
    most: int = 100
    cursor_chars: int = 0
    keys: tuple[str, ...] = ()
    connection: str | None = None
    streams: tuple[str, ...] = ("notes",)
    more: tuple[dict[str, Any], ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    related: tuple[str, ...] = ()


class TooSlow(BaseException):
    """A source is late. `planned` turns it into the outcome `Overdue`; only it may catch this."""


class ListServer:
    """A resource server over a list of hits. `calls` records every query."""

    def __init__(self, name: str, connection_id: str, plan: Plan) -> None:
        self.name, self.connection_id, self.plan = name, connection_id, plan
        self.calls: list[Any] = []
        keys = plan.keys or tuple(f"{name}-{number}" for number in range(plan.hits))
        self.rows = [self._hit(key) for key in keys]
        for row, more in zip(self.rows, plan.more):
            row |= more
        self.related = [self._related(key) for key in plan.related]
        self._fates: Iterator[str] = iter(plan.outcomes)

    def search(self, query: SearchQuery) -> Answer[SearchPage]:
        self._live(query)
        start = self._opened(query.cursor)
        related = self.related[: query.limit - 1 if self.rows else query.limit]
        if query.cursor or query.sort == "newest":
            related = []
        stop = min(len(self.rows), start + min(query.limit - len(related), self.plan.most))
        more = stop < len(self.rows)
        body: dict[str, Any] = {
            "object": "list",
            "has_more": more,
            "data": [*self.rows[start:stop], *related],
            "meta": {
                "count": len(self.rows),
                "count_accuracy": "exact",
                "recall": {"complete": True, "ranking_scope": "all_matches"},
                "warnings": [],
                **self.plan.meta,
            },
        }
        if more:
            body["next_cursor"] = f"{self.name}:{stop}".ljust(self.plan.cursor_chars, ".")
        return Answer(decode.read(body), body)

    def schema(self, query: SchemaQuery) -> Answer[Schema]:
        self._live(query)
        connection = {"connection_id": self.connection_id, "display_name": self.name}
        connector = {
            "object": "connector",
            "source": {"id": "list", "kind": "connector"},
            "connector_key": "list",
            "connector_id": "list",
            "stream_count": len(self.plan.streams),
            "granted_connections": [connection],
            "streams": [{"name": name, "primary_key": ["id"]} for name in self.plan.streams],
        }
        body = {"object": "schema", "detail": query.detail, "connectors": [connector]}
        return Answer(schema.read(body), body)

    def streams(self, *, connection_id: str | None = None) -> Answer[StreamList]:
        self._live("streams")
        rows = [
            {"object": "stream", "name": name, "connection_id": self.connection_id}
            for name in self.plan.streams
        ]
        return Answer(schema.streams({"object": "list", "has_more": False, "data": rows}))

    def stream(self, name: str, *, connection_id: str | None = None) -> Answer[StreamDetails]:
        self._live(("stream", name))
        return Answer(schema.stream({"object": "stream_metadata", "name": name}))

    def connectors(self) -> Answer[ConnectorList]:
        return Answer(ConnectorList(self.schema(SchemaQuery()).value.connectors))

    def records(self, query: RecordQuery) -> Answer[RecordPage]:
        said = self._say(query)
        return Answer(RecordPage(query.stream, [], has_more=False), said)

    def record(self, ref: RecordRef, read: RecordRead = RecordRead()) -> Answer[Record]:
        said, source = self._say((ref, read)), Source(self.connection_id, None, None)
        return Answer(Record(ref, source, None, {}), said)

    def aggregate(self, query: AggregateQuery) -> Answer[Buckets]:
        body = self._say(query)
        return Answer(decode_buckets(body), body)

    def field_window(
        self, ref: RecordRef, field_path: str, window: WindowRequest
    ) -> Answer[FieldRead]:
        said, source = self._say((ref, field_path, window)), Source(self.connection_id, None, None)
        return Answer(FieldRead(ref, source, field_path, "string"), said)

    def blob(self, blob_id: str, *, connection_id: str | None = None) -> Blob:
        self._live(("blob", blob_id))
        return Blob(blob_id, "text/plain", 0, "", lambda start, stop: iter(()))

    def _say(self, question: Any) -> dict[str, Any]:
        self._live(question)
        return {"object": "said", "by": self.name}

    def _live(self, question: Any) -> None:
        self.calls.append(question)
        fate = next(self._fates, OK)
        if fate == LATE:
            raise TooSlow
        if fate == DOWN:
            raise Unavailable("This source is away. Try again later.")
        if fate == REVOKED:
            raise Forbidden("This grant is revoked. Ask for a new one.", code="grant_revoked")

    def _opened(self, cursor: str | None) -> int:
        if cursor is None:
            return 0
        name, _, offset = cursor.rstrip(".").partition(":")
        if name != self.name or len(cursor) < self.plan.cursor_chars:
            raise InvalidRequest("This cursor is of another source.", code="invalid_cursor")
        return int(offset)

    def _hit(self, key: str) -> dict[str, Any]:
        return {
            "object": "search_result",
            "stream": self.plan.streams[0],
            "record_key": key,
            "connection_id": self.connection_id,
            "connector_key": "list",
            "display_name": self.name,
            "title": f"Note {key}",
        }

    def _related(self, key: str) -> dict[str, Any]:
        read = {"field": "body", "offset_chars": 0, "limit_chars": 100}
        return {**self._hit(key), "kind": "related", "begins": "It begins.", "related": read}


@dataclass
class Crowd:
    """A package over planned sources, asked page after page by one client."""

    plans: Sequence[Plan]
    each: Each | None = None
    servers: list[ListServer] = field(init=False)
    children: list[Child] = field(init=False)

    def __post_init__(self) -> None:
        names = [f"source {number}" for number in range(len(self.plans))]
        self.servers = [
            ListServer(name, plan.connection or name.replace(" ", "-"), plan)
            for name, plan in zip(names, self.plans)
        ]
        self.children = [self._child(server) for server in self.servers]

    def _child(self, server: ListServer) -> Child:
        held = tuple(
            MemberStream(name, server.connection_id, "list", server.name)
            for name in server.plan.streams
        )
        return Child(server.name, f"grant of {server.name}", held, lambda deadline: server)

    def open(self) -> PackageResourceServer:
        """The package, as seen by one request."""
        each = self.each or planned
        return PackageResourceServer(self.children, each, Deadline.after(60), SEALER)

    def search(self, **args: Any) -> Answer[SearchPage]:
        return self.open().search(SearchQuery(QUERY, **args))

    def pages(self, limit: int, most: int = 2_000) -> Iterator[dict[str, Any]]:
        """Every page to the end; fails if there is no end."""
        cursor = None
        for _ in range(most):
            body = body_of(self.search(limit=limit, cursor=cursor))
            yield body
            cursor = body.get("next_cursor")
            if cursor is None:
                return
        raise AssertionError(f"no end after {most} pages")


def of_grants(
    house: House, grants: dict[str, tuple[dict[str, Any], ...]], each: Each = serial
) -> Callable[[], PackageResourceServer]:
    """A function that opens a package over grants of one store, each with its name and entries."""
    store: Store = house.app.extensions["rung"].store
    children = [_of_grant(store, name, *house.grant(*grants[name])) for name in grants]
    return lambda: PackageResourceServer(children, each, Deadline.after(60), store.sealer)


def _of_grant(store: Store, name: str, grant_id: str, token: str) -> Child:
    server = store.open(token)
    rows = [row for one in server.connectors().value.connectors for row in one.rows]
    held = tuple(
        MemberStream(
            row.stream.name, source.connection_id or "", row.connector_key, source.display_name
        )
        for row in rows
        for source in row.connections
    )
    return Child(name, grant_id, held, lambda deadline: store.open(token))


def planned(fn: Callable[[T], R], items: Sequence[T], deadline: Deadline, /) -> list[Outcome[R]]:
    """Runs the calls in order; a source that is planned to be late gives `Overdue`."""
    found = list[Outcome[R]]()
    for item in items:
        try:
            found.append(attempt(fn, item))
        except TooSlow:
            found.append(Overdue())
    return found


def ids(body: dict[str, Any]) -> list[str]:
    """The records of a page, as (connection, key)."""
    return [f"{hit['connection_id']}/{hit['record_key']}" for hit in body["data"]]
