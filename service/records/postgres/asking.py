"""Statements of a snapshot, each within its deadline, and several in one round trip."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from evidence.work import Deadline
from service.records.engine import Generation, Moved
from service.records.engine.failures import timed_out
from service.records.postgres.catalog import Catalog
from service.records.sql.snapshot import SharedMethods
from service.records.postgres.connections import Connection, Loan, Rows, Statement

#: Statements sent at once: each has the whole time limit of a statement.
TOGETHER_MOST: Final = 16
_CONFINE = "SELECT rung_confine(%s::text[])"

#: (generation, catalog) of the row that the last opening statement gives.
Opened = Callable[[tuple[Any, ...]], tuple[Generation, Catalog]]


class _Later(Exception):
    """A statement was noted that is not made yet."""


class Asking(SharedMethods):
    """A transaction that reads, and what it knows without asking.

    The statements in `opening` begin it, together with the first one that is asked.
    """

    def __init__(
        self,
        loan: Loan,
        deadline: Deadline,
        opening: Sequence[Statement],
        opened: Opened,
        catalog: Catalog,
    ) -> None:
        self.catalog = catalog
        self._loan, self._deadline = loan, deadline
        self._opening, self._opened = opening, opened
        self._generation: Generation | None = None
        self._expected: Generation | None = None
        #: Answers to statements that were fetched ahead, by the statement with its parameters.
        self._known: dict[str, Rows] = {}
        self._noted: dict[str, Statement] | None = None
        #: The connections of the request, None for all; what is cached is limited to them too.
        self._connections: Sequence[str] | None = ()
        #: The statement that limits the connections; it is sent with the next one.
        self._confined: list[Statement] = []

    @property
    def db(self) -> Connection:
        """The connection inside the transaction."""
        self._together([])
        return self._loan.db

    def generation(self, expected: Generation | None = None) -> Generation:
        if self._generation is None:
            self._expected = expected or self._expected
            if self._expected is not None:
                return self._expected
            self._together([])
        assert self._generation is not None
        return self._generation

    def settle(self) -> None:
        """Asks for the generation if it was taken for true, and no statement has shown it since."""
        if self._expected is not None and self._generation is None:
            self.begun(self._loan.run(self._opening[-1])[0])

    def begun(self, rows: Rows) -> None:
        """Takes the rows of the last opening statement."""
        generation, catalog = self._opened(rows[0])
        self._generation = generation
        if self._expected is not None:
            if self._expected != self._generation or self.catalog.version != catalog.version:
                raise Moved
        self.catalog = catalog

    def confine(self, connection_ids: Iterable[str] | None) -> None:
        ids = None if connection_ids is None else sorted(connection_ids)
        self._connections, self._confined = ids, [(_CONFINE, (ids,))]

    def ahead(self, calls: Iterable[Callable[[], object]], turns: int = 1) -> None:
        """Makes the next statement of each call, all in one round trip; see `engine.Snapshot`."""
        if self._noted is not None:  # one of these calls calls it
            self._note(calls)
            return
        calls = tuple(calls)
        for _ in range(turns):
            noted: dict[str, Statement] = {}
            self._noted = noted
            try:
                self._note(calls)
            finally:
                self._noted = None
            if not noted:
                break
            # One alone may be needed by several calls.
            self._known |= zip(noted, self._together(list(noted.values())))

    def _note(self, calls: Iterable[Callable[[], object]]) -> None:
        for call in calls:
            with suppress(_Later):
                call()

    def know(self, rows: Rows, sql: str, *values: Any) -> None:
        """Takes the rows of a statement that need not be asked then."""
        self._known[repr((sql, values))] = rows

    def rows_of(self, sql: str, *values: Any) -> Rows:
        """All rows of a statement; raises `TimedOut` past the deadline."""
        if self._known or self._noted is not None:
            key = repr((sql, values))
            if key in self._known:
                return self._known[key]
            if self._noted is not None:
                self._noted[key] = sql, values
                raise _Later
        return self.rows_at_once(sql, *values)

    def rows_at_once(self, sql: str, *values: Any) -> Rows:
        """The same, even where statements are only noted."""
        return self._together([(sql, values)])[0]

    def run(self, sql: str, *values: Any) -> Rows:
        return self.rows_of(sql, *values)

    def _together(self, statements: Sequence[Statement]) -> list[Rows]:
        """The rows of several statements, in one round trip unless they are many."""
        rows = list[Rows]()
        for start in range(0, max(1, len(statements)), TOGETHER_MOST):
            if self._deadline.expired():
                raise timed_out()
            opening = self._opening if self._generation is None else ()
            before, self._confined = (*opening, *self._confined), []
            batch = statements[start : start + TOGETHER_MOST]
            answers = self._loan.run(*before, *batch) if before or batch else []
            if opening:
                self.begun(answers[len(opening) - 1])
            rows += answers[len(before) :]
        return rows
