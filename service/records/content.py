"""The rows of a store as they lie in its tables, the same from every engine; see `copying`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]
#: {table with its columns: the columns of a row that go there}. The second is null if none do.
Tables = Mapping[str, Sequence[int]]


class Content(Protocol):
    """The rows of a store as they lie in its tables, in one transaction.

    A row has the same columns in every engine: `connection` is (id, connection_id, connector_key,
    display_name, languages), `stream` (id, connection, name, manifest), `record` (seq, connection,
    stream, record_key, at, deleted, emitted_at, changed, data, deleted_at, big), `chunk` (value,
    no, connection, text), `change` (stream, version, seq, connection, fields), `blob` (id,
    connection, …), `blob_part` (blob, no, connection, data), `blob_use` (blob, seq, field,
    connection). Rows of the others are those of their tables.
    """

    def rows(self, part: str) -> Iterator[Row]:
        """All rows of a part in ascending order; `chunk` gives (connection, big) of records."""
        ...

    def chunks(self, value: int, count: int) -> Iterator[str]:
        """The chunks of a large value."""
        ...

    def version(self) -> int:
        """The version of the last change."""
        ...

    def put(self, part: str, rows: Sequence[Row]) -> None:
        """Adds rows."""
        ...

    def settle(self, version: int) -> None:
        """Sets all counters behind what was put."""
        ...


def spread(tables: Tables, rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """(table, its rows) of each table."""
    rows = list(rows)
    for into, columns in tables.items():
        found = [row for row in rows if row[columns[1]] is not None]
        yield into, [tuple(row[column] for column in columns) for row in found]
