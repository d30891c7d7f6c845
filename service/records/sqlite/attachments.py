"""Blobs as the store keeps them: once per connection, with the fields that use them."""

import sqlite3
from collections.abc import Iterable

from service.records.attachments import Attachment, parts


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
        ((blob, no, part) for no, part in enumerate(parts(content))),
    )
    return int(blob)
