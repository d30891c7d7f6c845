"""Readers of the database: every request one snapshot of it."""

from collections.abc import Iterator
from contextlib import contextmanager

from evidence.fold import FOLD_VERSION
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.records.attachments import BLOB_PART_BYTES
from service.records.engine import BlobRow, Snapshot
from service.records.failures import of_another_version
from service.records.postgres.catalog import Catalog
from service.records.postgres.connections import Pool, explained
from service.records.postgres.ddl import READABLE
from service.records.postgres.snapshot import PostgresSnapshot

#: Begins a snapshot in one round trip, whatever stands between.
_BEGIN = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = {milliseconds};
SELECT generation, catalog, (SELECT value FROM meta WHERE key = 'layout'),
  (SELECT value FROM meta WHERE key = 'fold_version') FROM counter
"""


class Reader:
    """Gives read-only snapshots of the store in the database at `url`. Safe to share."""

    def __init__(self, url: str) -> None:
        self._pool = Pool(url)
        self._catalog = Catalog(0)

    @contextmanager
    def snapshot(self, seconds: float = BUDGETS.store_seconds) -> Iterator[PostgresSnapshot]:
        """One consistent view of the store; statements past `seconds` raise `TimedOut`."""
        deadline = Deadline.after(seconds)
        begin = _BEGIN.format(milliseconds=max(1, int(seconds * 1_000)))
        with explained(), self._pool.begun(begin, deadline) as (db, row):
            generation, version, layout, fold_version = row
            if int(layout) not in READABLE or fold_version != FOLD_VERSION:
                raise of_another_version(newer=int(layout) >= READABLE.stop)
            if self._catalog.version != version:
                self._catalog = Catalog(version)
            yield PostgresSnapshot(db, generation, deadline, self._catalog)

    def blob_bytes(self, blob: BlobRow, start: int, stop: int) -> Iterator[bytes]:
        first, last = start // BLOB_PART_BYTES, -(-stop // BLOB_PART_BYTES)
        for number in range(first, last):
            with self.snapshot() as snapshot:
                part = snapshot.blob_part(blob, number)
            if part is None:
                return
            base = number * BLOB_PART_BYTES
            yield part[max(0, start - base) : stop - base]

    def exists(self) -> bool:
        return True

    def number(self) -> int:
        return 0

    def require_index(self, snapshot: Snapshot) -> None:
        """PostgreSQL checks its indexes itself."""

    def close(self) -> None:
        self._pool.close()
