"""Puts rows straight into a stream."""

from collections.abc import Iterable
from datetime import datetime

from service.records.intake import Counts
from service.records.writing.ingest import Batch
from service.records.intake import Row
from service.records.engine.scopes import StreamHandle
from service.records.writing import Writing


def put(
    writer: Writing,
    stream: StreamHandle,
    rows: Iterable[Row],
    *,
    now: datetime | None = None,
) -> Counts:
    """Imports rows into one stream, in batches, and counts the outcome."""
    batch = Batch(writer, now=now)
    for line, row in enumerate(rows, start=1):
        batch.add(stream, row, line=line)
    batch.flush()
    return batch.counts
