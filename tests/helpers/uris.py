"""URIs of records and streams, as upstreams and hosts write them."""

from base64 import urlsafe_b64encode
from urllib.parse import quote

import orjson

from evidence.handles import RECORD_SCHEME, STREAM_SCHEME, RecordRef


def record_uri(ref: RecordRef) -> str:
    """`pdpp://record/…` for a record, in the self-describing encoding."""
    parts = {name: part for name, part in ref._asdict().items() if part is not None}
    raw = orjson.dumps({"v": 1, "kind": "record", **parts})
    return RECORD_SCHEME + urlsafe_b64encode(raw).rstrip(b"=").decode()


def stream_uri(stream: str, connection_id: str | None = None) -> str:
    """`pdpp://stream/{name}`, with the connection, if any, as a query."""
    suffix = f"?connection_id={quote(connection_id, safe='')}" if connection_id else ""
    return STREAM_SCHEME + quote(stream, safe="") + suffix
