"""A package: one token for several grants, each on its own resource server.

Search and the lists query all children and merge the results. Everything else asks exactly one,
chosen by the content of the grants, so that its paging, bookmarks and counts stay valid. If one
child holds all the requested data, its answer is returned unchanged.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from evidence.errors import EvidenceError, Forbidden, NotFound
from evidence.handles import RecordRef
from evidence.hits import SearchPage
from evidence.limits import BUDGETS
from evidence.model import Buckets
from evidence.records import FieldRead, Record, RecordPage
from evidence.schema import Bearer, ConnectorList, Schema, StreamDetails, StreamList, merged
from evidence.work import Deadline, Each
from service.keys import Sealer
from service.sources.package import gathering as schemas
from service.sources.package import membership
from service.sources.package.membership import Child, Locations
from service.sources.package.search import Search, covered, narrowed
from service import ports
from service.ports import Answer, ResourceServer

T = TypeVar("T")
V = TypeVar("V", bound=schemas.Warned)

__all__ = ["Child", "PackageResourceServer"]


class PackageResourceServer:
    """Several grants as one. See `ports.ResourceServer`.

    For one request only: children are opened once, under its `deadline`. `fan_out` waits for them.
    """

    def __init__(
        self, children: Sequence[Child], fan_out: Each, deadline: Deadline, sealer: Sealer
    ) -> None:
        self._members = membership.Membership(children)
        self._fan_out, self._deadline, self._sealer = fan_out, deadline, sealer

    def schema(self, query: ports.SchemaQuery) -> Answer[Schema]:
        locations: Locations = self._members.within(query.connection_id)
        if query.stream is not None:
            locations = self._members.stream(query.stream, query.connection_id)
        children = membership.children_of(locations)
        if len(children) > 1 and query.detail == "full":
            raise membership.ambiguous(locations, stream=query.stream)

        def merge(gathered: schemas.Gathered[Schema]) -> Schema:
            answered = [connector for schema in gathered.values for connector in schema.connectors]
            connectors = merged([*answered, *schemas.by_membership(gathered.silent, locations)])
            bearer = Bearer("package", "client")
            return Schema(connectors, query.detail == "compact", bearer, gathered.warnings)

        return self._all(children, lambda rs: rs.schema(query), merge)

    def streams(self, *, connection_id: str | None = None) -> Answer[StreamList]:
        def merge(gathered: schemas.Gathered[StreamList]) -> StreamList:
            rows = (row for stream_list in gathered.values for row in stream_list.rows)
            ordered = sorted(rows, key=lambda row: (row.name, row.source.connection_id or ""))
            return StreamList(tuple(ordered), gathered.warnings)

        children = membership.children_of(self._members.within(connection_id))
        return self._all(children, lambda rs: rs.streams(connection_id=connection_id), merge)

    def stream(self, name: str, *, connection_id: str | None = None) -> Answer[StreamDetails]:
        locations = self._members.stream(name, connection_id)
        merge = partial(schemas.stream, locations=locations)
        children = membership.children_of(locations)
        return self._all(children, lambda rs: rs.stream(name, connection_id=connection_id), merge)

    def connectors(self) -> Answer[ConnectorList]:
        def merge(gathered: schemas.Gathered[ConnectorList]) -> ConnectorList:
            answered = [connector for part in gathered.values for connector in part.connectors]
            silent = schemas.by_membership(gathered.silent, self._members.locations)
            return ConnectorList(merged([*answered, *silent]), gathered.warnings)

        return self._all(self._members.children, lambda rs: rs.connectors(), merge)

    def records(self, query: ports.RecordQuery) -> Answer[RecordPage]:
        return self._of_stream(query).records(query)

    def aggregate(self, query: ports.AggregateQuery) -> Answer[Buckets]:
        return self._of_stream(query).aggregate(query)

    def record(self, ref: RecordRef, read: ports.RecordRead = ports.RecordRead()) -> Answer[Record]:
        return self._point(ref, lambda rs: rs.record(ref, read))

    def field_window(
        self, ref: RecordRef, field_path: str, window: ports.WindowRequest
    ) -> Answer[FieldRead]:
        return self._point(ref, lambda rs: rs.field_window(ref, field_path, window))

    def blob(self, blob_id: str, *, connection_id: str | None = None) -> ports.Blob:
        """`connection_id` is optional only with a single child, because blobs name no stream."""
        locations = self._members.within(connection_id)
        self._chosen_child(locations, connection_id)
        return self._first(locations, lambda rs: rs.blob(blob_id, connection_id=connection_id))

    def search(self, query: ports.SearchQuery) -> Answer[SearchPage]:
        locations = covered(self._members, query)
        children = membership.children_of(locations)
        if len(children) == 1:
            return self._server(children[0]).search(narrowed(query, children[0], locations))
        return Search(locations, query, self._sealer).page(self._fan_out, self._deadline)

    def _of_stream(self, query: ports.RecordQuery | ports.AggregateQuery) -> ResourceServer:
        locations = self._members.stream(query.stream, query.connection_id)
        return self._server(self._chosen_child(locations, query.connection_id))

    def _chosen_child(self, locations: Locations, connection_id: str | None) -> Child:
        """The child to ask; 409 `ambiguous_connection` if the caller has to choose."""
        children = membership.children_of(locations)
        if len(children) > 1 and connection_id is None:
            raise membership.ambiguous(locations)
        return children[0]

    def _point(self, ref: RecordRef, ask: Callable[[ResourceServer], T]) -> T:
        """The answer of the first child that has the record; grants may overlap."""
        locations = self._members.stream(ref.stream, ref.connection_id)
        self._chosen_child(locations, ref.connection_id)
        return self._first(locations, ask)

    def _first(self, locations: Locations, ask: Callable[[ResourceServer], T]) -> T:
        """The answer of the first child that has one; the error of the first if none has."""
        first: EvidenceError | None = None
        for child in membership.children_of(locations):
            try:
                return ask(self._server(child))
            except (NotFound, Forbidden) as error:
                first = first or error
        assert first is not None, "a location has a child"
        raise first

    def _all(
        self,
        children: Sequence[Child],
        ask: Callable[[ResourceServer], Answer[V]],
        merge: Callable[[schemas.Gathered[V]], V],
    ) -> Answer[V]:
        """The answer of the one child, or those of all children that answer in time, merged."""
        if len(children) == 1:
            return ask(self._server(children[0]))
        deadline = self._deadline.share(BUDGETS.fan_in_share, most=BUDGETS.source_seconds)
        outcomes = self._fan_out(lambda child: ask(child.open(deadline)), children, deadline)
        return Answer(merge(schemas.Gathered(children, outcomes)))

    def _server(self, child: Child) -> ResourceServer:
        return child.open(self._deadline)
