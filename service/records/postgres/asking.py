"""Statements of a snapshot, each within its deadline."""

from collections.abc import Iterator
from typing import Any, Final

from evidence.work import Deadline
from service.records.postgres.catalog import Catalog
from service.records.postgres.connections import Connection, timed_out

#: Rows of a log that are read at a time.
PIECE: Final = 1_000


class Asking:
    """A transaction that reads, and what it knows without asking."""

    def __init__(self, db: Connection, deadline: Deadline, catalog: Catalog) -> None:
        self.db, self.catalog = db, catalog
        self._deadline = deadline

    def rows_of(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement; raises `TimedOut` past the deadline."""
        if self._deadline.expired():
            raise timed_out()
        return self.db.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of a statement, if any."""
        rows = self.rows_of(sql, *values)
        return rows[0] if rows else None

    def each_row(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement in pieces: its last parameters are where to go on, and how many.

        Rows are ordered by their first column.
        """
        *fixed, after = values
        while True:
            rows = self.rows_of(sql, *fixed, after, PIECE)
            yield from rows
            if len(rows) < PIECE:
                return
            after = rows[-1][0]
