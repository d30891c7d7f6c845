"""Finds the stored rows of a connection by their digests; see `unchanged`."""

from array import array
from collections.abc import Iterable
from hashlib import blake2b

from service.records.writing.ingest import Batch
from service.records.intake import Row


class StoredRows:
    """The rows of a connection; `batch` has those that wait to be stored."""

    def __init__(self, batch: Batch, connection_id: str) -> None:
        self._batch, self._connection_id = batch, connection_id

    @property
    def context(self) -> str:
        """A key of the digests that depends on the secret of the store.

        Without it, a sender could make two mails with the same digest, and hide the second.
        """
        key = str(self._batch.writer.meta("secret")).encode()[: blake2b.MAX_KEY_SIZE]
        return blake2b(self._connection_id.encode(), key=key).hexdigest()

    def digests(self) -> bytes:
        """All digests, as `unchanged.Digests` takes them."""
        return array("q", self._batch.writer.digests(self._connection_id)).tobytes()

    def rows(self, digests: Iterable[int]) -> list[Row] | None:
        """The rows with these digests; None if one of them has changed, or is about to."""
        rows = list[Row]()
        for digest in digests:
            stored = self._batch.writer.with_digest(self._connection_id, digest)
            if stored is None or self._batch.changes(*stored[1:]):
                return None
            rows.append(Row(stored[3], stream=stored[0]))
        return rows
