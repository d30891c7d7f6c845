"""Blobs: bytes a granted, visible record refers to; everything else does not exist."""

import base64
import binascii
import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from evidence.errors import Ambiguous, NotFound
from evidence.limits import CONTRACT
from service.upstreams import routes
from service.upstreams.ports import Blob
from service.upstreams.store import records
from service.upstreams.store.ddl import BLOB_PART_BYTES
from service.upstreams.store.documents import Stored
from service.upstreams.store.reader import Reader
from service.upstreams.store.visible import StreamView, View, limits

_TEXT_TYPES = ("application/json", "application/xml", "application/x-ndjson", "message/rfc822")


def open_blob(reader: Reader, view: View, blob_id: str, connection_id: str | None) -> Blob:
    """A blob some visible record of the grant refers to; 404 `blob_not_found` otherwise."""
    with reader.snapshot() as db:
        found = [row for s in view.within(connection_id) for row in _reachable(db, s, blob_id)]
    owners = {stream.connection_id: (row, stream) for row, stream in found}
    if not owners:
        raise NotFound("No such blob in this grant.", code="blob_not_found")
    if len(owners) > 1:
        raise _ambiguous(view, [stream for _, stream in owners.values()])
    (key, media_type, size, sha256), _ = next(iter(owners.values()))

    def read(start: int, stop: int) -> Iterator[bytes]:
        return _read(reader, (key, sha256), start, stop)

    return Blob(blob_id, media_type, size, sha256, read)


def is_reference(value: Any) -> bool:
    """Whether a value is the metadata of a stored blob."""
    return isinstance(value, dict) and isinstance(value.get("blob_id"), str)


def metadata(
    db: sqlite3.Connection, stream: StreamView, stored: Stored, field: str, value: Any
) -> dict[str, Any] | None:
    """What is known of a binary value in a field without its bytes, or None where it is text."""
    if is_reference(value):
        known = {key: value[key] for key in value if key != "data_base64"}
        row = _of_field(db, stored, field, value["blob_id"])
        if row:
            known |= {"mime_type": row[1], "size_bytes": row[2], "sha256": row[3]}
        return {**known, "fetch_url": routes.blob(value["blob_id"], stream.connection_id)}
    if isinstance(value, str):
        return _inline(value)
    return None


def text_of(
    db: sqlite3.Connection, stored: Stored, field: str, known: dict[str, Any]
) -> str | None:
    """The text of a text blob of the field, of at most 32 MB, or None where it is not text."""
    media_type = str(known.get("mime_type", "")).split(";")[0].strip().lower()
    if "blob_id" not in known or not (media_type.startswith("text/") or media_type in _TEXT_TYPES):
        return None
    row = _of_field(db, stored, field, known["blob_id"])
    if row is None or row[2] > CONTRACT.export_bytes:
        return None
    parts = db.execute("SELECT data FROM blob_part WHERE blob = ? ORDER BY no", (row[0],))
    try:
        return b"".join(data for (data,) in parts).decode()
    except UnicodeDecodeError:
        return None


def _inline(value: str) -> dict[str, Any]:
    """Metadata of base64 text that stands in a record itself."""
    head, comma, tail = value.partition(",") if value.startswith("data:") else ("", "", value)
    known: dict[str, Any] = {"encoding": "base64", "size_chars": len(value)}
    if comma:
        known["mime_type"] = head.removeprefix("data:").split(";")[0] or "text/plain"
    try:
        raw = base64.b64decode(tail + "=" * (-len(tail) % 4), altchars=b"-_")
    except (binascii.Error, ValueError):
        return known
    return {**known, "size_bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def _reachable(
    db: sqlite3.Connection, stream: StreamView, blob_id: str
) -> list[tuple[tuple[int, str, int, str], StreamView]]:
    clause, values = limits(stream)
    rows = db.execute(
        "SELECT DISTINCT b.id, b.media_type, b.size_bytes, b.sha256, u.field FROM blob b "
        "JOIN blob_use u ON u.blob = b.id JOIN record r ON r.seq = u.seq "
        f"WHERE b.blob_id = ? AND r.stream = ? AND r.deleted = 0 AND {clause}",
        (blob_id, stream.id, *values),
    ).fetchall()
    return [(row[:4], stream) for row in rows if row[4] in stream.granted]


def _of_field(db: sqlite3.Connection, stored: Stored, field: str, blob_id: str) -> Any:
    """(key, media type, bytes, SHA-256) of a blob, only where this field of the record uses it."""
    return db.execute(
        "SELECT b.id, b.media_type, b.size_bytes, b.sha256 FROM blob b JOIN blob_use u "
        "ON u.blob = b.id WHERE u.seq = ? AND u.field = ? AND b.blob_id = ?",
        (stored.seq, field, blob_id),
    ).fetchone()


def _ambiguous(view: View, streams: list[StreamView]) -> Ambiguous:
    return records.ambiguous(view, streams)


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
