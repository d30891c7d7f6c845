"""Bytes that arrive with records: moved out of `data_base64`, stored once per connection.

A field may hold a blob object, or a list of them: {"blob_id", "mime_type", "size_bytes", "sha256",
"data_base64"?}. The record keeps the object without its bytes. Importers of files put raw bytes
into `data_base64`. Only a field whose record delivered bytes, now or in an earlier version, refers
to them.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evidence.names import Refused
from evidence.work import portions

BLOB_PART_BYTES = 262_144
DEFAULT_MEDIA_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A blob that a record's field names; `content` is None if only the name arrived.

    `sha256` is that of the content, otherwise what the data claims.
    """

    field: str
    blob_id: str
    media_type: str
    sha256: str
    content: bytes | None


def take_attachments(data: dict[str, Any]) -> list[Attachment]:
    """The blobs in a record's fields; their bytes are removed from `data`.

    Missing sizes and SHA-256 are filled in; a mismatch is Refused.
    """
    attachments: list[Attachment] = []
    for name, value in data.items():
        if isinstance(value, list):
            data[name] = [_take(name, item, attachments) for item in value]
        else:
            data[name] = _take(name, value, attachments)
    return attachments


def _take(field: str, value: Any, attachments: list[Attachment]) -> Any:
    if not isinstance(value, dict) or not ("blob_id" in value or "data_base64" in value):
        return value
    reference = {name: item for name, item in value.items() if name != "data_base64"}
    content = _decode(field, value["data_base64"]) if "data_base64" in value else None
    if content is not None:
        digest = hashlib.sha256(content).hexdigest()
        for name, actual in (("size_bytes", len(content)), ("sha256", digest)):
            if reference.setdefault(name, actual) != actual:
                raise Refused(f"{field}.{name} does not match the bytes in data_base64.")
        reference.setdefault("blob_id", f"blob_{digest}")
    blob_id = reference.get("blob_id")
    media_type = reference.setdefault("mime_type", DEFAULT_MEDIA_TYPE)
    if not isinstance(blob_id, str) or not blob_id or not isinstance(media_type, str):
        raise Refused(f"{field}.blob_id and {field}.mime_type must be strings.")
    attachments.append(
        Attachment(field, blob_id, media_type, str(reference.get("sha256", "")), content)
    )
    return reference


def _decode(field: str, text: Any) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise Refused(f"{field}.data_base64 is not base64.") from None


def covering(start: int, stop: int) -> Iterator[tuple[int, slice]]:
    """(number of a stored piece, the part of it between two offsets in the blob)."""
    for number in range(start // BLOB_PART_BYTES, -(-stop // BLOB_PART_BYTES)):
        base = number * BLOB_PART_BYTES
        yield number, slice(max(0, start - base), stop - base)


def parts(content: bytes) -> Iterator[bytes]:
    """The bytes of a blob, in the pieces in which they are stored."""
    yield from portions(content, BLOB_PART_BYTES)
