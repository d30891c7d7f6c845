"""The REST addresses a PDPP body points at: relative, each segment percent-encoded once."""

import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

from evidence import pointer
from evidence.handles import RecordRef

_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*")
_ROUTED = frozenset({"object", "method", "route", "stream", "record_id"})  # not in the query


def segment(text: str) -> str:
    """One percent-encoded path segment or query value; dots alone would climb to another path."""
    if text in (".", ".."):
        return text.replace(".", "%2E")
    return text if _UNRESERVED.fullmatch(text) else quote(text, safe="")


@lru_cache(maxsize=1024)
def name(text: str) -> str:
    """The same for a stream or a connection: there are few."""
    return segment(text)


def record(stream: str, record_id: str) -> str:
    return f"/v1/streams/{name(stream)}/records/{segment(record_id)}"


def field_window(stream: str, record_id: str) -> str:
    return f"{record(stream, record_id)}/field-window"


def blob(blob_id: str, connection_id: str | None) -> str:
    where = f"?connection_id={segment(connection_id)}" if connection_id else ""
    return f"/v1/blobs/{segment(blob_id)}{where}"


def field_value(ref: RecordRef, field: str) -> str:
    """The record with the whole value of one field. `fields` would split a name at its commas."""
    where = f"connection_id={segment(ref.connection_id)}&" if ref.connection_id else ""
    name = "fields[]" if "," in field else "fields"
    return f"{record(ref.stream, ref.record_id)}?{where}{name}={segment(field)}"


def field_window_read(
    stream: str, record_id: str, connection_id: str | None, field: str, **window: Any
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


def link_excerpts(body: dict[str, Any]) -> dict[str, Any]:
    """A search body whose excerpts carry `links.read`: the address that opens the match."""
    hits = [{**hit, "evidence_excerpts": _linked(hit)} for hit in body["data"]]
    return {**body, "data": hits}


def _linked(hit: dict[str, Any]) -> list[dict[str, Any]]:
    excerpts = hit.get("evidence_excerpts") or []
    return [
        {**excerpt, "links": {"read": _address(excerpt["read"])}} if "read" in excerpt else excerpt
        for excerpt in excerpts
    ]


def _address(read: dict[str, Any]) -> str:
    named = ((name, str(value)) for name, value in read.items() if name not in _ROUTED)
    query = "&".join(
        f"{name}={value if _UNRESERVED.fullmatch(value) else quote_plus(value)}"
        for name, value in named
    )
    return f"{read['route']}?{query}"
