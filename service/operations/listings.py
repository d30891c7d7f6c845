"""REST routes besides the operations: connectors, streams, one stream, and blobs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from service.operations import arguments
from service.operations.base import Arguments, BaseOperation, Route


class OfConnection(Arguments):
    connection_id = arguments.connection_id()


class OfStream(OfConnection):
    stream = arguments.stream(required=True)


@dataclass(frozen=True, kw_only=True)
class Listing(BaseOperation):
    """A route without a tool. `ask` returns the source's answer."""

    ask: Callable[..., Any]


LISTINGS = (
    Listing(
        name="connectors",
        title="List connectors",
        description="The granted connectors, with their connections and streams.",
        arguments=OfConnection(),
        ask=lambda session, connection_id=None: session.rs.connectors(),
        route=Route("/v1/connectors"),
    ),
    Listing(
        name="streams",
        title="List streams",
        description="One row per stream and connection, with the number of records.",
        arguments=OfConnection(),
        ask=lambda session, **asked: session.rs.streams(**asked),
        route=Route("/v1/streams"),
    ),
    Listing(
        name="stream",
        title="Get a stream",
        description="The metadata of one stream: its fields, and the queries that each supports.",
        arguments=OfStream(),
        ask=lambda session, stream, **asked: session.rs.stream(stream, **asked),
        route=Route("/v1/streams/<stream>"),
        examples=({"stream": "notes"},),
    ),
)
BLOB = Listing(
    name="blob",
    title="Get a blob",
    description="",  # in `service/openapi/parts`
    arguments=OfConnection(),
    ask=lambda session, blob_id, **asked: session.rs.blob(blob_id, **asked),
    route=Route("/v1/blobs/<blob_id>"),
)
