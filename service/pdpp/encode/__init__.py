"""From typed values to PDPP bodies: the only code that writes them."""

from collections.abc import Callable
from typing import Any

from evidence import schema_wire, wire
from evidence.hits import SearchPage
from evidence.model import Buckets
from evidence.records import FieldRead, Record, RecordPage
from evidence.schema import ConnectorList, Schema, StreamDetails, StreamList
from service.pdpp.encode import search
from service.pdpp.encode.records import encode_field, encode_page, encode_record
from service.ports import Answer

ENCODERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Buckets: wire.aggregation,
    ConnectorList: schema_wire.connectors,
    FieldRead: encode_field,
    Record: encode_record,
    RecordPage: encode_page,
    Schema: schema_wire.document,
    SearchPage: search.encode,
    StreamDetails: schema_wire.details,
    StreamList: schema_wire.streams,
}


def body(value: Any) -> dict[str, Any]:
    """The PDPP body of a value."""
    return ENCODERS[type(value)](value)


def body_of(answer: Answer[Any]) -> dict[str, Any]:
    """The body that a remote source sent, or else the encoded value."""
    return body(answer.value) if answer.body is None else answer.body
