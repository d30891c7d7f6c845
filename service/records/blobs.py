"""Blobs: bytes a granted, visible record refers to; everything else does not exist."""

import base64
import binascii
import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from evidence import binary, routes
from evidence.errors import Ambiguous, NotFound
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from service.ports import Blob
from service.records import attached, lists
from service.records.sqlite.ddl import BLOB_PART_BYTES
from service.records.documents import Stored
from service.records.sqlite.reader import Reader
from service.records.view import StreamView, View

_TEXT_TYPES = ("application/json", "application/xml", "application/x-ndjson", "message/rfc822")


def open_blob(reader: Reader, view: View, blob_id: str, connection_id: str | None) -> Blob:
    """A blob some visible record of the grant refers to; 404 `blob_not_found` otherwise."""
    with reader.snapshot() as db:
        owners = {
            stream.connection_id: (row, stream)
            for stream in view.within(connection_id)
            for row in attached.reachable(db, stream, blob_id)
        }
    if not owners:
        raise NotFound("No such blob in this grant.", code="blob_not_found")
    if len(owners) > 1:
        raise _ambiguous(view, [stream for _, stream in owners.values()])
    (key, media_type, size, sha256), _ = next(iter(owners.values()))

    def read(start: int, stop: int) -> Iterator[bytes]:
        return _read(reader, (key, sha256), start, stop)

    return Blob(blob_id, media_type, size, sha256, read)


def metadata(
    db: sqlite3.Connection,
    view: View,
    stream: StreamView,
    stored: Stored,
    field: str,
    value: Any,
) -> dict[str, Any] | None:
    """What is known of a binary value in a field without its bytes, or None where it is text."""
    if binary.is_reference(value):
        return attached.linked(db, view, stream, stored.seq, field, value)
    if isinstance(value, str):
        ref = RecordRef(stream.name, stored.record_key, stream.connection_id)
        return _inline(value, ref, field, stream.manifest.fields[field].media_type)
    return None


def text_of(
    db: sqlite3.Connection, stored: Stored, field: str, known: dict[str, Any]
) -> str | None:
    """The text of a text blob of the field, of at most 32 MB, or None where it is not text."""
    media_type = str(known.get("mime_type", "")).split(";")[0].strip().lower()
    if "blob_id" not in known or not (media_type.startswith("text/") or media_type in _TEXT_TYPES):
        return None
    row = attached.of_field(db, stored.seq, field, known["blob_id"])
    if row is None or row.size_bytes > CONTRACT.export_bytes:
        return None
    parts = db.execute("SELECT data FROM blob_part WHERE blob = ? ORDER BY no", (row.key,))
    try:
        return b"".join(data for (data,) in parts).decode()
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


def _read(reader: Reader, blob: tuple[int, str], start: int, stop: int) -> Iterator[bytes]:
    """Bytes `start`..`stop` (exclusive) of a blob, by key and SHA-256, a part at a time.

    In a store that has replaced the one the blob was found in, the key may be that of another.
    """
    for number in range(start // BLOB_PART_BYTES, (stop + BLOB_PART_BYTES - 1) // BLOB_PART_BYTES):
        with reader.snapshot() as db:
            row = db.execute(
                "SELECT data FROM blob_part p JOIN blob b ON b.id = p.blob "
                "WHERE p.blob = ? AND b.sha256 = ? AND p.no = ?",
                (*blob, number),
            ).fetchone()
        if row is None:
            return
        base = number * BLOB_PART_BYTES
        yield row[0][max(0, start - base) : stop - base]
