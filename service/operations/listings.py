"""REST routes besides the operations: connectors, streams, one stream, and blobs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


LISTINGS: tuple[Listing, ...] = (
    Listing(
        "connectors",
        "List connectors",
        "The granted connectors, with their connections and streams.",
        "/v1/connectors",
        lambda session, connection_id: session.rs.connectors(),
        {},
    ),
    Listing(
        "streams",
        "List streams",
        "One row per stream and connection, with the number of records.",
        "/v1/streams",
        lambda session, connection_id: session.rs.streams(connection_id=connection_id),
        {},
    ),
    Listing(
        "stream",
        "Get a stream",
        "The metadata of one stream: its fields, and the queries that each supports.",
        "/v1/streams/<stream>",
        lambda session, connection_id, stream: session.rs.stream(
            stream, connection_id=connection_id
        ),
        {"stream": "notes"},
    ),
)
