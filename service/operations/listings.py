"""REST routes besides the operations: connectors, streams, one stream, and blobs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from service.operations.base import BaseOperation, R, Route, Session
from service.ports import Answer, BlobRequest, ConnectorsRequest, StreamRequest, StreamsRequest


@dataclass(frozen=True, kw_only=True)
class Listing(BaseOperation[R]):
    """A route without a tool. `ask` returns the source's answer."""

    ask: Callable[[Session, R], Answer[Any]]


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
        description="The metadata of one stream: its fields, and the queries that each supports.",
        ask=lambda session, request: session.rs.stream(
            request.stream, connection_id=request.connection_id
        ),
        route=Route("/v1/streams/<stream>"),
        examples=({"stream": "notes"},),
    ),
)
BLOB = BaseOperation(
    request=BlobRequest,
    title="Get a blob",
    description="",  # in `service/openapi/parts`
    route=Route("/v1/blobs/<blob_id>"),
)
