"""The REST addresses a PDPP body points at: relative, each segment percent-encoded once."""

from typing import Any
from urllib.parse import quote, urlencode

from evidence import pointer


def segment(text: str) -> str:
    """One percent-encoded path segment or query value."""
    return quote(text, safe="")


def record(stream: str, record_id: str) -> str:
    return f"/v1/streams/{segment(stream)}/records/{segment(record_id)}"


def field_window(stream: str, record_id: str) -> str:
    return f"{record(stream, record_id)}/field-window"


def blob(blob_id: str, connection_id: str) -> str:
    query = urlencode({"connection_id": connection_id})
    return f"/v1/blobs/{segment(blob_id)}?{query}"


def field_window_read(
    stream: str, record_id: str, connection_id: str, field: str, **window: Any
) -> dict[str, Any]:
    """The `read` descriptor of a PDPP body: which call reads this field."""
    return {
        "object": "field_window_read",
        "method": "GET",
        "route": field_window(stream, record_id),
        "stream": stream,
        "record_id": record_id,
        "field": pointer.path_of(field),
        "connection_id": connection_id,
        **window,
    }


def follow(read: dict[str, Any]) -> str:
    """The address of a `read` descriptor, ready for a GET."""
    skip = ("object", "method", "route", "stream", "record_id")
    return f"{read['route']}?{urlencode({k: v for k, v in read.items() if k not in skip})}"
