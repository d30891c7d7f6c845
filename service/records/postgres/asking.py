"""Statements of a snapshot, each within its deadline, and several in one round trip."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from evidence.work import Deadline
from service.records.failures import timed_out
from service.records.postgres.catalog import Catalog
from service.records.postgres.connections import Connection

#: Rows of a log that are read at a time.
PIECE: Final = 1_000

_CONFINE = "SELECT rung_confine(%s::text[])"

_Rows = list[tuple[Any, ...]]


class _Later(Exception):
    """A statement was noted that is not made yet."""


class Asking:
    """A transaction that reads, and what it knows without asking."""

    def __init__(self, db: Connection, deadline: Deadline, catalog: Catalog) -> None:
        self.db, self.catalog = db, catalog
        self._deadline = deadline
        #: Answers to statements that were fetched ahead, by the statement with its parameters.
        self._known: dict[str, _Rows] = {}
        self._noted: dict[str, tuple[str, tuple[Any, ...]]] | None = None
        #: The connections of the request, None for all; what is cached is limited to them too.
        self._named: Sequence[str] | None = ()
        #: The statement that limits the connections; it is sent with the next one.
        self._confined: tuple[str, tuple[Any, ...]] | None = None

    def confine(self, connection_ids: Iterable[str] | None) -> None:
        named = None if connection_ids is None else sorted(connection_ids)
        self._named, self._confined = named, (_CONFINE, (named,))

    def ahead(self, *calls: Callable[[], object]) -> None:
        """Makes the first statement of each call, all in one round trip; see `engine.Snapshot`."""
        noted: dict[str, tuple[str, tuple[Any, ...]]] = {}
        self._noted = noted
        try:
            for call in calls:
                with suppress(_Later):
                    call()
        finally:
            self._noted = None
        if self._deadline.expired():
            raise timed_out()
        if len(noted) > 1:  # one alone is asked for when it is needed
            self._known |= zip(noted, self._together(list(noted.values())))

    def rows_of(self, sql: str, *values: Any) -> _Rows:
        """All rows of a statement; raises `TimedOut` past the deadline."""
        if self._known or self._noted is not None:
            key = repr((sql, values))
            if key in self._known:
                return self._known[key]
            if self._noted is not None:
                self._noted[key] = sql, values
                raise _Later
        if self._deadline.expired():
            raise timed_out()
        if self._confined:
            return self._together([(sql, values)])[0]
        return self.db.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Any) -> _Rows:
        """The rows of a statement that other engines run too; `?` marks its parameters."""
        return self.rows_of(sql.replace("?", "%s"), *values)

    def _together(self, asked: Sequence[tuple[str, tuple[Any, ...]]]) -> list[_Rows]:
        """The rows of several statements, in one round trip."""
        with self.db.pipeline():
            if self._confined:
                self.db.execute(*self._confined)
                self._confined = None
            cursors = [self.db.execute(*one) for one in asked]
        return [cursor.fetchall() for cursor in cursors]

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
