"""The REST addresses a PDPP body points at: relative, each segment percent-encoded once.

Also where the metadata of an authorization server are (RFC 8414).
"""

from typing import Any, Final
from urllib.parse import quote_plus

from evidence import pointer
from evidence.handles import UNRESERVED, RecordRef, segment

AUTHORIZATION_SERVER: Final = "/.well-known/oauth-authorization-server"

_ROUTED = frozenset({"object", "method", "route", "stream", "record_id"})  # not in the query


def blob(blob_id: str, connection_id: str | None) -> str:
    where = f"?connection_id={segment(connection_id)}" if connection_id else ""
    return f"/v1/blobs/{segment(blob_id)}{where}"


def field_value(ref: RecordRef, field: str) -> str:
    """The record with the whole value of one field. `fields` would split a name at its commas."""
    name = "fields[]" if "," in field else "fields"
    return f"{ref.url}{'&' if ref.connection_id else '?'}{name}={segment(field)}"


def field_window_read(
    stream: str, record_id: str, connection_id: str | None, field: str, **window: Any
) -> dict[str, Any]:
    """The `read` descriptor of a PDPP body: which call reads this field."""
    return {
        "object": "field_window_read",
        "method": "GET",
        "route": f"{RecordRef(stream, record_id).url}/field-window",
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
        f"{name}={value if UNRESERVED.fullmatch(value) else quote_plus(value)}"
        for name, value in named
    )
    return f"{read['route']}?{query}"
