"""REST routes besides the operations: connectors, streams, one stream, and blobs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evidence.schema import ConnectorList, StreamDetails, StreamList
from service.operations.base import Session
from service.ports import Answer

BLOB_PATH = "/v1/blobs/<blob_id>"
BLOB_TITLE = "Get a blob"


@dataclass(frozen=True, slots=True)
class Listing:
    """A route without a tool. `ask` receives `connection_id` and the path parameters."""

    name: str
    title: str
    description: str
    path: str
    ask: Callable[..., Answer[Any]]
    example: dict[str, str]


def _connectors(session: Session, **_: str | None) -> Answer[ConnectorList]:
    return session.rs.connectors()


def _streams(session: Session, *, connection_id: str | None) -> Answer[StreamList]:
    return session.rs.streams(connection_id=connection_id)


def _stream(session: Session, *, connection_id: str | None, stream: str) -> Answer[StreamDetails]:
    return session.rs.stream(stream, connection_id=connection_id)


LISTINGS: tuple[Listing, ...] = (
    Listing(
        "connectors",
        "List connectors",
        "The granted connectors, with their connections and streams.",
        "/v1/connectors",
        _connectors,
        {},
    ),
    Listing(
        "streams",
        "List streams",
        "One row per stream and connection, with the number of records.",
        "/v1/streams",
        _streams,
        {},
    ),
    Listing(
        "stream",
        "Get a stream",
        "The metadata of one stream: its fields, and the queries that each supports.",
        "/v1/streams/<stream>",
        _stream,
        {"stream": "notes"},
    ),
)
