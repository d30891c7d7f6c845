"""Bytes that come with records: taken out of `data_base64`, kept once per connection.

A field may hold a blob object, or a list of them: {"blob_id", "mime_type", "size_bytes",
"sha256", "data_base64"?}. The record keeps the object without its bytes.
"""

import base64
import binascii
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from service.records.sqlite.ddl import BLOB_PART_BYTES
from service.records.intake import Refused

DEFAULT_MEDIA_TYPE = "application/octet-stream"
_MARKS = (b'"blob_id"', b'"data_base64"')


@dataclass(frozen=True, slots=True)
class Attachment:
    """A blob a record's field names; `content` is None where only the name came in."""

    field: str
    blob_id: str
    media_type: str
    sha256: str
    content: bytes | None


def take_attachments(data: dict[str, Any], json: bytes) -> list[Attachment]:
    """The blobs among a record's fields, whose JSON is `json`; their bytes leave `data`.

    Size and SHA-256 are filled in where they are missing; a mismatch is Refused.
    """
    if not any(mark in json for mark in _MARKS):
        return []
    found: list[Attachment] = []
    for name, value in data.items():
        if isinstance(value, list):
            data[name] = [_take(name, item, found) for item in value]
        else:
            data[name] = _take(name, value, found)
    return found


def keep_attachments(
    db: sqlite3.Connection,
    connection: int,
    seq: int,
    attachments: Iterable[Attachment],
    later: list[tuple[int, int, Attachment]] | None = None,
) -> None:
    """Stores the bytes of a record's blobs and notes which field uses which.

    Those that would change the bytes of a blob go into `later` instead, if it is given.
    """
    for attachment in attachments:
        blob = _find(db, connection, attachment)
        changes = attachment.content is not None and blob and blob[1] != attachment.sha256
        if changes and later is not None:
            later.append((connection, seq, attachment))
            continue
        if attachment.content is not None and (blob is None or blob[1] != attachment.sha256):
            blob = (_store(db, connection, attachment, attachment.content), attachment.sha256)
        if blob is not None:
            db.execute(
                "INSERT OR IGNORE INTO blob_use (blob, seq, field) VALUES (?, ?, ?)",
                (blob[0], seq, attachment.field),
            )


def release_attachments(
    db: sqlite3.Connection, seq: int, fields: Iterable[str] | None = None
) -> set[int]:
    """Forgets the blobs a record's fields use, of all fields where none are named."""
    used = db.execute("SELECT blob, field FROM blob_use WHERE seq = ?", (seq,)).fetchall()
    names = None if fields is None else set(fields)
    gone = [(blob, seq, name) for blob, name in used if names is None or name in names]
    db.executemany("DELETE FROM blob_use WHERE blob = ? AND seq = ? AND field = ?", gone)
    return {blob for blob, _, _ in gone}


def sweep(db: sqlite3.Connection, blobs: Iterable[int]) -> None:
    """Removes those of the blobs that no record uses any more."""
    for blob in blobs:
        if db.execute("SELECT 1 FROM blob_use WHERE blob = ? LIMIT 1", (blob,)).fetchone() is None:
            db.execute("DELETE FROM blob_part WHERE blob = ?", (blob,))
            db.execute("DELETE FROM blob WHERE id = ?", (blob,))


def _take(field: str, value: Any, found: list[Attachment]) -> Any:
    if not isinstance(value, dict) or not ("blob_id" in value or "data_base64" in value):
        return value
    kept = {name: item for name, item in value.items() if name != "data_base64"}
    content = _decode(field, value["data_base64"]) if "data_base64" in value else None
    if content is not None:
        digest = hashlib.sha256(content).hexdigest()
        for name, actual in (("size_bytes", len(content)), ("sha256", digest)):
            if kept.setdefault(name, actual) != actual:
                raise Refused(f"{field}.{name} does not match the bytes in data_base64.")
        kept.setdefault("blob_id", f"blob_{digest}")
    blob_id, media_type = kept.get("blob_id"), kept.setdefault("mime_type", DEFAULT_MEDIA_TYPE)
    if not isinstance(blob_id, str) or not blob_id or not isinstance(media_type, str):
        raise Refused(f"{field}.blob_id and {field}.mime_type must be strings.")
    found.append(Attachment(field, blob_id, media_type, str(kept.get("sha256", "")), content))
    return kept


def _decode(field: str, text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise Refused(f"{field}.data_base64 is not base64.") from None


def _find(
    db: sqlite3.Connection, connection: int, attachment: Attachment
) -> tuple[int, str] | None:
    return db.execute(  # type: ignore[no-any-return]
        "SELECT id, sha256 FROM blob WHERE connection = ? AND blob_id = ?",
        (connection, attachment.blob_id),
    ).fetchone()


def _store(db: sqlite3.Connection, connection: int, attachment: Attachment, content: bytes) -> int:
    blob = db.execute(
        "INSERT INTO blob (connection, blob_id, media_type, size_bytes, sha256)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (connection, blob_id) DO UPDATE SET"
        " media_type = excluded.media_type, size_bytes = excluded.size_bytes,"
        " sha256 = excluded.sha256 RETURNING id",
        (connection, attachment.blob_id, attachment.media_type, len(content), attachment.sha256),
    ).fetchone()[0]
    db.execute("DELETE FROM blob_part WHERE blob = ?", (blob,))
    db.executemany(
        "INSERT INTO blob_part (blob, no, data) VALUES (?, ?, ?)",
        ((blob, no, part) for no, part in enumerate(_parts(content))),
    )
    return int(blob)


def _parts(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), BLOB_PART_BYTES):
        yield content[start : start + BLOB_PART_BYTES]
