"""Blobs: bytes that came with granted, visible records. Callers cannot detect other blobs."""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from evidence.errors import Ambiguous, NotFound
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from evidence.values import Base64, BlobRef, base64_of, is_reference
from service.records.writing.attachments import covering
from service.records.engine.engine import Reader
from service.ports import Blob
from service.records.view.choices import ambiguous
from service.records.view.documents import GrantedRecord
from service.records.view import View

_TEXT_TYPES = ("application/json", "application/xml", "application/x-ndjson", "message/rfc822")


def open_blob(reader: Reader, view: View, blob_id: str, connection_id: str | None) -> Blob:
    """The blob with this SHA-256 or name that a visible record delivered in a granted field.

    Raises 404 `blob_not_found` if there is none, 409 if there are several with different bytes.
    """
    with reader.snapshot() as snapshot:
        snapshot.confine(view.grant.connection_ids)
        uses = [
            (row, stream)
            for stream in view.within(connection_id)
            for row in snapshot.blobs(stream.selection(), blob_id)
            if row.field in stream.granted
        ]
    uses = [use for use in uses if use[0].sha256 == blob_id] or uses
    if not uses:
        raise NotFound("No such blob in this grant.", code="blob_not_found")
    contents = dict.fromkeys(row.sha256 for row, _ in uses)
    if len(contents) > 1:
        owners = {stream.connection_id: stream for _, stream in uses}
        if len(owners) > 1:
            raise ambiguous(view, list(owners.values()))
        raise Ambiguous(
            f"{len(contents)} blobs are named {blob_id!r}. Use the SHA-256 of one of them.",
            code="ambiguous_blob",
            retry_with="blob_id",
            available_blobs=list(contents)[: CONTRACT.candidates],
        )
    row, stream = min(uses, key=lambda use: use[0].seq)
    view.note_use([RecordRef(stream.name, "", stream.connection_id)])

    def read(start: int, stop: int) -> Iterator[bytes]:
        for number, inside in covering(start, stop):
            with reader.snapshot() as snapshot:
                snapshot.confine(view.grant.connection_ids)
                part = snapshot.blob_part(row, number)
            if part is None:  # the store was replaced with one without the blob
                return
            yield part[inside]

    return Blob(blob_id, row.media_type, row.size_bytes, row.sha256, read)


def described(granted: GrantedRecord, field: str, value: Any) -> Base64 | BlobRef | None:
    """The description of a binary value in a field, or None if it is text."""
    if is_reference(value):
        return granted.resolved(field, value)
    if isinstance(value, str):
        return _decoded(value, granted.stream.manifest.fields[field].media_type)
    return None


def text_of(granted: GrantedRecord, field: str, description: Base64 | BlobRef) -> str | None:
    """The text of a text blob in the field, at most 32 MB; None if it is not text."""
    if isinstance(description, Base64):
        return None
    media_type = (description.media_type or "").split(";")[0].strip().lower()
    if not (media_type.startswith("text/") or media_type in _TEXT_TYPES):
        return None
    row = granted.stored_blob(field, description.blob_id, description.sha256)
    if row is None or row.size_bytes > CONTRACT.export_bytes:
        return None
    try:
        return granted.snapshot.blob_content(row).decode()
    except UnicodeDecodeError:
        return None


def _decoded(value: str, declared: str | None) -> Base64:
    """The description of base64 text, with the size and SHA-256 of the bytes it encodes."""
    description = base64_of(value, declared=declared)
    tail = value.partition(",")[2] if value.startswith("data:") else value
    try:
        raw = base64.b64decode(tail + "=" * (-len(tail) % 4), altchars=b"-_")
    except (binascii.Error, ValueError):
        return description
    return replace(description, size_bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
