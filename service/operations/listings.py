"""REST routes that are not operations: connectors, streams, one stream, and blobs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from evidence.hits import SearchPage
from evidence.wire import link_excerpts
from service.operations.base import BaseOperation, R, Route, Session
from service.ports import Answer, BlobRequest, ConnectorsRequest, HybridQuery, SearchQuery
from service.ports import SemanticQuery, StreamRequest, StreamsRequest


@dataclass(frozen=True, kw_only=True)
class Listing(BaseOperation[R]):
    """A route without a tool. `ask` returns the source's answer; 404 unless `is_served`."""

    ask: Callable[[Session, R], Answer[Any]]
    is_served: Callable[[Session], bool] = lambda session: True


def _searches_by_meaning(session: Session) -> bool:
    return getattr(session.rs, "searches_by_meaning", False)


def _search(session: Session, query: SearchQuery) -> Answer[SearchPage]:
    """A page with the mode of its route. A page of hybrid hits has no cursor."""
    page = session.rs.search(query).value
    cursor = None if isinstance(query, HybridQuery) else page.next_cursor
    return Answer(replace(page, retrieval_mode=query.mode, next_cursor=cursor))


LISTINGS: tuple[Listing[Any], ...] = (
    Listing(
        request=ConnectorsRequest,
        title="List connectors",
        description="The granted connectors, with their connections and streams.",
        ask=lambda session, request: session.rs.connectors(),
        route=Route("/v1/connectors"),
    ),
    Listing(
        request=StreamsRequest,
        title="List streams",
        description="One row per stream and connection, with the number of records.",
        ask=lambda session, request: session.rs.streams(connection_id=request.connection_id),
        route=Route("/v1/streams"),
    ),
    Listing(
        request=StreamRequest,
        title="Get a stream",
        description="The metadata of one stream: its fields and the queries that each supports.",
        ask=lambda session, request: session.rs.stream(
            request.stream, connection_id=request.connection_id
        ),
        route=Route("/v1/streams/<stream>"),
        examples=({"stream": "notes"},),
    ),
)
#: Routes over a store with an encoder, which are 404 without vectors.
BY_MEANING: tuple[Listing[Any], ...] = (
    Listing(
        request=SemanticQuery,
        title="Search by meaning",
        description="The records that are nearest to the query in meaning.",
        ask=_search,
        is_served=_searches_by_meaning,
        route=Route("/v1/search/semantic", link=link_excerpts),
        examples=({"query": "quorum elm"},),
    ),
    Listing(
        request=HybridQuery,
        title="Search by words and meaning",
        description="The first page of /v1/search; each hit shows how it was found.",
        ask=_search,
        is_served=_searches_by_meaning,
        route=Route("/v1/search/hybrid", link=link_excerpts),
        examples=({"query": "quorum elm"},),
    ),
)
BLOB = BaseOperation(
    request=BlobRequest,
    title="Get a blob",
    description="",  # in `service/openapi/parts`
    route=Route("/v1/blobs/<blob_id>"),
)
