"""Blobs: bytes a granted, visible record refers to; everything else does not exist."""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from typing import Any

from evidence import binary, routes
from evidence.errors import Ambiguous, NotFound
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from service.records.engine import Engine, Snapshot, Stored
from service.ports import Blob
from service.records import attached, lists
from service.records.view import StreamView, View

_TEXT_TYPES = ("application/json", "application/xml", "application/x-ndjson", "message/rfc822")


def open_blob(engine: Engine, view: View, blob_id: str, connection_id: str | None) -> Blob:
    """A blob some visible record of the grant refers to; 404 `blob_not_found` otherwise."""
    with engine.snapshot() as snapshot:
        owners = {
            stream.connection_id: (row, stream)
            for stream in view.within(connection_id)
            for row in attached.reachable(snapshot, stream, blob_id)
        }
    if not owners:
        raise NotFound("No such blob in this grant.", code="blob_not_found")
    if len(owners) > 1:
        raise _ambiguous(view, [stream for _, stream in owners.values()])
    row, _ = next(iter(owners.values()))

    def read(start: int, stop: int) -> Iterator[bytes]:
        return engine.blob_bytes(row, start, stop)

    return Blob(blob_id, row.media_type, row.size_bytes, row.sha256, read)


def metadata(
    snapshot: Snapshot,
    view: View,
    stream: StreamView,
    stored: Stored,
    field: str,
    value: Any,
) -> dict[str, Any] | None:
    """What is known of a binary value in a field without its bytes, or None where it is text."""
    if binary.is_reference(value):
        return attached.linked(snapshot, view, stream, stored.seq, field, value)
    if isinstance(value, str):
        ref = RecordRef(stream.name, stored.record_key, stream.connection_id)
        return _inline(value, ref, field, stream.manifest.fields[field].media_type)
    return None


def text_of(snapshot: Snapshot, stored: Stored, field: str, known: dict[str, Any]) -> str | None:
    """The text of a text blob of the field, of at most 32 MB, or None where it is not text."""
    media_type = str(known.get("mime_type", "")).split(";")[0].strip().lower()
    if "blob_id" not in known or not (media_type.startswith("text/") or media_type in _TEXT_TYPES):
        return None
    row = snapshot.blob_of(stored.seq, field, known["blob_id"])
    if row is None or row.size_bytes > CONTRACT.export_bytes:
        return None
    try:
        return snapshot.blob_content(row).decode()
    except UnicodeDecodeError:
        return None


def _inline(value: str, ref: RecordRef, field: str, declared: str | None) -> dict[str, Any]:
    """Metadata of base64 text that stands in a record itself."""
    known = binary.base64_field(value, declared=declared)
    del known["object"]
    known["fetch_url"] = routes.field_value(ref, field)
    tail = value.partition(",")[2] if value.startswith("data:") else value
    try:
        raw = base64.b64decode(tail + "=" * (-len(tail) % 4), altchars=b"-_")
    except (binascii.Error, ValueError):
        return known
    return {**known, "size_bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def _ambiguous(view: View, streams: list[StreamView]) -> Ambiguous:
    return lists.ambiguous(view, streams)
