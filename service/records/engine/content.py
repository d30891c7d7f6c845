"""The table rows of a store, in the same form for every engine; see `copying`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]
#: {table with its columns: the positions of their values in a row}. A row whose value at the second
#: position is None is not written to that table.
Tables = Mapping[str, Sequence[int]]


class Content(Protocol):
    """The table rows of a store, read or written in one transaction.

    A row has the same columns in every engine: `connection` is (id, connection_id, connector_key,
    display_name), `stream` (id, connection, name, manifest), `record` (seq, connection,
    stream, record_key, at, deleted, emitted_at, changed, data, deleted_at, big), `chunk` (value,
    no, connection, text), `change` (stream, version, seq, connection, fields, was_at, left_at),
    `commit_log` (version, epoch), `blob` (id, connection, size_bytes, sha256), `blob_part` (blob,
    no, connection, data), `blob_use` (blob, seq, field, connection, blob_id, media_type). Other
    parts have the columns of their tables.
    """

    def rows(self, part: str) -> Iterator[Row]:
        """Yields the rows of a part in ascending order; for `chunk`, (connection, big)."""

    def chunks(self, value: int, count: int) -> Iterator[str]:
        """The chunks of a large value."""

    def version(self) -> int:
        """The version of the last change."""

    def put(self, part: str, rows: Sequence[Row]) -> None:
        """Adds rows."""

    def settle(self, version: int) -> None:
        """Sets the counters so that numbers of new rows follow those of the added ones."""


def spread(tables: Tables, rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yields (table, its rows) for each table."""
    rows = list(rows)
    for into, columns in tables.items():
        present = [row for row in rows if row[columns[1]] is not None]
        yield into, [tuple(row[column] for column in columns) for row in present]
