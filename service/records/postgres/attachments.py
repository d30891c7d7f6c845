"""Blobs as the database keeps them: once per connection, with the fields that use them."""

from collections.abc import Iterable, Sequence

from evidence.errors import InvalidRequest
from service.records.attachments import Attachment, parts
from service.records.postgres.transactions import Transactions

#: A database is no place for larger ones.
BLOB_BYTES = 134_217_728

_KNOWN = "SELECT id, sha256 FROM blob WHERE conn = ? AND blob_id = ?"
_STORE = """
INSERT INTO blob (conn, blob_id, media_type, size_bytes, sha256) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (conn, blob_id) DO UPDATE SET media_type = excluded.media_type,
  size_bytes = excluded.size_bytes, sha256 = excluded.sha256
RETURNING id
"""
_USE = """
INSERT INTO blob_use (blob, seq, field, conn) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_RELEASE = """
DELETE FROM blob_use u USING unnest(%s::bigint[], %s::text[]) AS d(seq, field)
WHERE u.seq = d.seq AND (d.field IS NULL OR u.field = d.field) RETURNING u.blob
"""
_SWEEP = """
DELETE FROM blob b WHERE id = ANY(%s) AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob = b.id)
RETURNING id
"""


class Attachments(Transactions):
    """The steps of a writer for blobs; see `writer.BaseWriter`."""

    def keep(self, connection: int, seq: int, attachments: Iterable[Attachment]) -> None:
        for one in attachments:
            blob = self.row(_KNOWN, connection, one.blob_id)
            if one.content is not None and (blob is None or blob[1] != one.sha256):
                blob = (self._store_blob(connection, one, one.content),)
            if blob is not None:
                self.write(_USE, blob[0], seq, one.field, connection)

    def release(self, fields: Sequence[tuple[int, str | None]]) -> set[int]:
        if not fields:
            return set()
        return {blob for (blob,) in self.write(_RELEASE, *map(list, zip(*fields)))}

    def sweep(self, blobs: Iterable[int]) -> None:
        if orphans := list(blobs):
            gone = [blob for (blob,) in self.write(_SWEEP, orphans)]
            self.write("DELETE FROM blob_part WHERE blob = ANY(%s)", gone)

    def _store_blob(self, connection: int, one: Attachment, content: bytes) -> int:
        if len(content) > BLOB_BYTES:
            raise InvalidRequest(f"The blob {one.blob_id[:40]!r} is over {BLOB_BYTES} bytes.")
        row = (connection, one.blob_id, one.media_type, len(content), one.sha256)
        ((blob,),) = self.write(_STORE, *row)
        self.write("DELETE FROM blob_part WHERE blob = %s", blob)
        pieces = ((blob, no, connection, part) for no, part in enumerate(parts(content)))
        self.copy("blob_part (blob, no, conn, data)", pieces)
        return int(blob)
