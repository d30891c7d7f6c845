"""Blobs as the store keeps them: once per connection, with the fields that use them."""

from collections.abc import Iterable, Sequence

from service.records.attachments import Attachment, parts
from service.records.sqlite.transactions import Transactions

_KNOWN = "SELECT id, sha256 FROM blob WHERE connection = ? AND blob_id = ?"
_STORE = """
INSERT INTO blob (connection, blob_id, media_type, size_bytes, sha256) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (connection, blob_id) DO UPDATE SET media_type = excluded.media_type,
  size_bytes = excluded.size_bytes, sha256 = excluded.sha256
RETURNING id
"""
_USE = "INSERT OR IGNORE INTO blob_use (blob, seq, field) VALUES (?, ?, ?)"
_RELEASE = """
DELETE FROM blob_use WHERE seq = ?1 AND (?2 IS NULL OR field = ?2) RETURNING blob
"""


class Attachments(Transactions):
    """The steps of a writer for blobs; see `writer.BaseWriter`."""

    def keep(self, connection: int, seq: int, attachments: Iterable[Attachment]) -> None:
        for one in attachments:
            blob = self.row(_KNOWN, connection, one.blob_id)
            if one.content is not None and (blob is None or blob[1] != one.sha256):
                if blob and self.staged:  # readers see those bytes
                    self.staged_blobs.append((connection, seq, one))
                    continue
                blob = (self._store_blob(connection, one, one.content),)
            if blob is not None:
                self.run(_USE, blob[0], seq, one.field)

    def release(self, fields: Sequence[tuple[int, str | None]]) -> set[int]:
        return {blob for place in fields for (blob,) in self.run(_RELEASE, *place)}

    def sweep(self, blobs: Iterable[int]) -> None:
        for blob in blobs:
            if self.row("SELECT 1 FROM blob_use WHERE blob = ? LIMIT 1", blob) is None:
                self.run("DELETE FROM blob_part WHERE blob = ?", blob)
                self.run("DELETE FROM blob WHERE id = ?", blob)

    def _store_blob(self, connection: int, one: Attachment, content: bytes) -> int:
        row = (connection, one.blob_id, one.media_type, len(content), one.sha256)
        ((blob,),) = self.run(_STORE, *row)
        self.run("DELETE FROM blob_part WHERE blob = ?", blob)
        for no, part in enumerate(parts(content)):
            self.run("INSERT INTO blob_part (blob, no, data) VALUES (?, ?, ?)", blob, no, part)
        return int(blob)
