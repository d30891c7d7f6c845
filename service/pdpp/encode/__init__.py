"""From typed values to PDPP bodies: the only place that writes them."""

from collections.abc import Callable
from typing import Any

from evidence.hits import SearchPage
from evidence.model import Buckets
from evidence.schema import ConnectorList, Schema, StreamDetails, StreamList
from service.pdpp.encode import aggregate, schema, search

ENCODERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Buckets: aggregate.body,
    ConnectorList: schema.connectors,
    Schema: schema.body,
    SearchPage: search.encode,
    StreamDetails: schema.stream,
    StreamList: schema.streams,
}


def body(value: Any) -> dict[str, Any]:
    """The PDPP body of a value."""
    return ENCODERS[type(value)](value)
