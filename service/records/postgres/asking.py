"""Runs a snapshot's statements, each within its deadline, and several in one round trip."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from evidence.work import Deadline
from service.records.engine import Generation, Moved
from service.records.engine.failures import timed_out
from service.records.engine.later import Later
from service.records.postgres.catalog import Catalog
from service.records.sql.snapshot import SharedMethods
from service.records.postgres.connections import Connection, Loan, Rows, Statement

#: Statements sent at once: each has the whole time limit of a statement.
TOGETHER_MOST: Final = 16
_CONFINE = "SELECT rung_confine(%s::text[])"

#: (generation, catalog) of the row that the last opening statement gives.
Opened = Callable[[tuple[Any, ...]], tuple[Generation, Catalog]]


class QueuedStatement:
    """A statement that waits to be sent, then its rows, which `keep` gets as soon as they come."""

    __slots__ = ("sql", "values", "keep", "rows")

    def __init__(
        self, sql: str, values: tuple[Any, ...], keep: Callable[[Rows], None] | None
    ) -> None:
        self.sql, self.values, self.keep = sql, values, keep
        self.rows: Rows | None = None

    def waits(self) -> bool:
        """Whether the statement is not sent yet."""
        return self.rows is None


class Asking(SharedMethods):
    """A transaction that reads. The first of its statements is sent after those of `opening`."""

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
        self._waiting = list[QueuedStatement]()
        #: What was promised, by the statement with its values: it is sent once.
        self._promised: dict[str, QueuedStatement] = {}
        #: The last statement that looks up keys, by its text and its other values.
        self._lookups: dict[tuple[Any, ...], QueuedStatement] = {}
        #: The connections of the request, None for all; what is cached is limited to them too.
        self._connections: Sequence[str] | None = ()
        #: The statement that limits the connections; it is sent with the next one.
        self._confined: list[Statement] = []

    @property
    def db(self) -> Connection:
        """The connection inside the transaction."""
        self._send()
        return self._loan.db

    def generation(self, expected: Generation | None = None) -> Generation:
        if self._generation is None:
            self._expected = expected or self._expected
            if self._expected is not None:
                return self._expected
            self._send()
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
        self._send_all()  # they are confined as they were when they were made
        self._promised.clear()
        self._lookups.clear()
        ids = None if connection_ids is None else sorted(connection_ids)
        self._connections, self._confined = ids, [(_CONFINE, (ids,))]

    def later(self, sql: str, *values: Any) -> Later[Rows]:
        key = repr((sql, values))
        request = self._promised.get(key)
        if request is None:
            request = self._promised[key] = self.request(sql, *values)
        return Later(partial(self.rows_of, request), request.waits)

    def look_up(self, sql: str, keys: Iterable[Any], *values: Any) -> Later[Rows]:
        """Rows of a statement whose first value is a list; one that waits gets these keys too.

        The rows are those of all its keys.
        """
        request = self._lookups.get((sql, *values))
        if request is None or not request.waits():
            request = self._lookups[sql, *values] = self.request(sql, [], *values)
        request.values[0].extend(keys)
        return Later(partial(self.rows_of, request), request.waits)

    def run(self, sql: str, *values: Any) -> Rows:
        return self.rows_of(self.request(sql, *values))

    def request(
        self, sql: str, *values: Any, keep: Callable[[Rows], None] | None = None
    ) -> QueuedStatement:
        """A statement that is sent with all that wait once the rows of one of them are read."""
        request = QueuedStatement(sql, values, keep)
        self._waiting.append(request)
        return request

    def rows_of(self, request: QueuedStatement) -> Rows:
        """The rows of a statement; raises `TimedOut` past the deadline."""
        if request.rows is None:
            self._send_all()
        assert request.rows is not None
        return request.rows

    def _send_all(self) -> None:
        """Sends the statements that wait, in one round trip unless they are many."""
        while self._waiting:
            self._send()

    def _send(self) -> None:
        """Sends those that have waited longest."""
        if self._deadline.expired():
            raise timed_out()
        opening = self._opening if self._generation is None else ()
        before, self._confined = (*opening, *self._confined), []
        batch = self._waiting[:TOGETHER_MOST]
        statements = [*before, *((request.sql, request.values) for request in batch)]
        answers = self._loan.run(*statements) if statements else []
        self._waiting = self._waiting[TOGETHER_MOST:]
        if opening:
            self.begun(answers[len(opening) - 1])
        for request, rows in zip(batch, answers[len(before) :]):
            request.rows = rows
            if request.keep is not None:
                request.keep(rows)
