"""Removes or replaces streams in one transaction: readers see the old rows until it ends.

    with staging(writer, [("mail", "messages")]) as stage:
        ...                    # rows for mail/messages
        stage.publish(counts)

In a replaced stream, records that are missing from the new rows are deleted and their deletion is
logged. A removed stream is deleted with everything derived from it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from evidence.errors import NotFound
from service.records.intake import Counts, Row
from service.records.postgres.transactions import Transactions
from service.records.writing.ingest import Batch
from service.records.writing.streams import open_stream

#: The keys of rows that arrive while streams are staged; see `Writer.find`.
ARRIVED = "arrived"
#: Locks the connections of streams, so that nobody else changes or removes their records.
LOCK = """
SELECT s.id FROM stream s JOIN connection c ON c.id = s.conn WHERE s.id = ANY(%s) ORDER BY c.id
FOR NO KEY UPDATE OF c FOR KEY SHARE OF s
"""
BATCH_RECORDS: Final = 1_000
_MISSING = f"""
SELECT record_key FROM record r WHERE stream = %s AND NOT deleted AND NOT EXISTS
  (SELECT 1 FROM {ARRIVED} a WHERE a.stream = r.stream AND a.record_key = r.record_key)
LIMIT {BATCH_RECORDS}
"""
_OF_STREAM = "SELECT seq FROM record WHERE stream = %s"
_ORDINALS = "SELECT ordinal FROM scope WHERE stream = %s"
_LARGE = f"""
SELECT (place.value ->> 0)::bigint FROM document, json_each(big::json) AS place
WHERE seq IN ({_OF_STREAM})
"""
_USED = f"DELETE FROM blob_use WHERE seq IN ({_OF_STREAM}) RETURNING blob"
_ERASE: Final = (
    f"DELETE FROM chunk WHERE value IN ({_LARGE})",
    *(
        f"DELETE FROM {table} WHERE seq IN ({_OF_STREAM})"
        for table in ("term", "passage", "folded", "cell", "document", "tombstone")
    ),
    *(
        f"DELETE FROM {table} WHERE ordinal IN ({_ORDINALS})"
        for table in ("word_count", "word_key")
    ),
    *(f"DELETE FROM {table} WHERE stream = %s" for table in ("change", "record", "scope")),
    "DELETE FROM stream WHERE id = %s",
)
_ALONE = (
    "DELETE FROM connection c WHERE id = %s AND NOT EXISTS (SELECT 1 FROM stream WHERE conn = c.id)"
)


@dataclass(slots=True)
class Stage:
    """The pending changes of `staging`."""

    writer: Transactions
    transaction: ExitStack = field(default_factory=ExitStack)
    retained: set[tuple[str, str]] = field(default_factory=set)

    def keep_manifests(self, targets: Iterable[tuple[str, str]] | None = None) -> None:
        """Keeps the manifests of some streams, by default of all."""
        self.retained |= set(self.writer.staged if targets is None else targets)

    def publish(self, arrived: Counts | None = None) -> Counts:
        """Commits; returns the counts of all changes. `arrived` counts the new rows."""
        batch, writer = Batch(self.writer), self.writer
        batch.counts = arrived or batch.counts
        for target in writer.staged:
            if arrived or target in self.retained:
                stream = open_stream(writer, *target)
                while missing := writer.rows_of(_MISSING, stream.id):
                    for (key,) in missing:
                        batch.add(stream, Row({}, key, deleted=True))
                    batch.flush()
            else:
                self._erase(target)
        self.transaction.close()
        return batch.counts

    def _erase(self, target: tuple[str, str]) -> None:
        writer, row = self.writer, self.writer.find_stream(*target)
        assert row is not None
        stream, connection, _ = row
        writer.sweep({blob for (blob,) in writer.write(_USED, stream)})
        for statement in _ERASE:
            writer.write(statement, stream)
        writer.write(_ALONE, connection)
        writer.changed_catalog()


@contextmanager
def staging(writer: Transactions, targets: Sequence[tuple[str, str]]) -> Iterator[Stage]:
    """Accepts rows for streams, (connection id, name), that stay invisible until published.

    Raises `NotFound` for a stream that does not exist.
    """
    stage = Stage(writer)
    with stage.transaction:
        stage.transaction.enter_context(writer.transaction())
        for connection_id, name in targets:
            row = writer.find_stream(connection_id, name)
            if row is None:
                raise NotFound(
                    f"The store has no stream {connection_id}/{name}. List the streams: rung stats."
                )
            writer.rows_of(LOCK, [row[0]])
        writer.write(
            f"CREATE TEMP TABLE {ARRIVED} (stream, record_key) ON COMMIT DROP AS"
            " SELECT stream, record_key FROM record WITH NO DATA"
        )
        writer.staged = {target: target[1] for target in targets}
        try:
            yield stage
        finally:
            writer.staged = {}
