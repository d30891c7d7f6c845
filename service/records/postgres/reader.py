"""Reads the database: every request reads one snapshot."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from threading import Event
from typing import Any, Final, NamedTuple

from evidence.fold import FOLD_VERSION
from evidence.limits import BUDGETS
from evidence.work import Deadline, within
from service.records.engine import Generation, Snapshot
from service.records.engine.failures import of_another_version
from service.records.postgres.catalog import Catalog
from service.records.postgres.connections import ERRORS, Loan, Pool, Rows, Statement, explained
from service.records.postgres.ddl import READABLE
from service.records.postgres.snapshot import PostgresSnapshot

_BEGIN: Final[Statement] = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
_STATE = """
SELECT generation, catalog, (SELECT value FROM meta WHERE key = 'layout'),
  (SELECT value FROM meta WHERE key = 'fold_version'),
  (SELECT value FROM meta WHERE key = 'secret'), to_jsonb(counter) ->> 'epoch', version,
  set_config('statement_timeout', %s, true)
FROM counter
""".strip()  # older layouts have no epochs
_HAS_COMMIT: Final = "SELECT 1 FROM commit_log WHERE (version, generation, epoch) = (%s, %s, %s)"
#: Seconds that a request waits for a replica to answer and to catch up with the primary; seconds
#: that an unresponsive replica is not used; seconds between two checks.
REPLICA_SECONDS: Final = 0.5
BEHIND_SECONDS: Final = 0.05
AWAY_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.002
#: A connection with the rows of the last statement that began its transaction, if any.
Begun = tuple[Loan, Rows]


class StoreState(NamedTuple):
    """The row of `_STATE`."""

    generation: int
    catalog: str
    layout: str
    fold_version: str
    secret: str
    epoch: str
    version: int
    timeout: str

    @property
    def commit(self) -> tuple[int, int, str]:
        """The last commit as a row of `commit_log`."""
        return self.version, self.generation, self.epoch


class Replica:
    """A server that follows the primary. It serves what the primary would serve now, or nothing."""

    def __init__(self, url: str) -> None:
        self.pool = Pool(url)
        self._away = Deadline.after(0)

    def begun(
        self, opening: Sequence[Statement], reached: StoreState, stack: ExitStack
    ) -> Begun | None:
        """A transaction with every commit of the primary up to a state of this store.

        None if the replica does not answer, belongs to another store, still lags, or follows a
        server that was the primary before and had other commits.
        """
        behind, pause = Deadline.after(BEHIND_SECONDS), Event()
        while self._away.expired():
            with ExitStack() as tried:
                try:
                    short = Deadline.after(REPLICA_SECONDS)
                    loan = tried.enter_context(self.pool.loan(short))
                    rows = loan.run(*opening)[-1]
                except ERRORS:
                    self._away = Deadline.after(AWAY_SECONDS)
                    break
                state = StoreState(*rows[0])
                if state.secret == reached.secret and state.generation >= reached.generation:
                    if (
                        state.epoch != reached.epoch
                        and not loan.run((_HAS_COMMIT, reached.commit))[0]
                    ):
                        self._away = Deadline.after(AWAY_SECONDS)
                        break
                    stack.enter_context(tried.pop_all())
                    return loan, rows
            if behind.expired():
                break
            pause.wait(LOOK_SECONDS)
        return None


class Reader:
    """Opens read-only snapshots of the store in the database at `url`. Safe to share."""

    ranks = False

    def __init__(self, url: str, replicas: Sequence[str] = ()) -> None:
        self._pool = Pool(url)
        self._replicas = cycle(map(Replica, replicas)) if replicas else None
        self._catalog = Catalog("")
        self._number = self._newest = 0

    @contextmanager
    def snapshot(self, seconds: float = BUDGETS.store_seconds) -> Iterator[PostgresSnapshot]:
        """One consistent view of the store; statements past `seconds` raise `TimedOut`."""
        with explained(), within(seconds) as deadline, ExitStack() as stack:
            opening = _BEGIN, (_STATE, (str(max(1, int(deadline.left() * 1_000))),))
            loan, rows = self._loan(opening, deadline, stack)
            loan.limit = deadline
            snapshot = PostgresSnapshot(loan, deadline, opening, self._opened, self._catalog)
            if rows:
                snapshot.begun(rows)
            yield snapshot
            snapshot.settle()

    def _opened(self, row: tuple[Any, ...]) -> tuple[Generation, Catalog]:
        """(generation, catalog) from a row of the state; raises for a store of another version.

        If the primary has fewer commits than before, everything that was cached is forgotten.
        """
        state = StoreState(*row)
        if int(state.layout) not in READABLE or state.fold_version != FOLD_VERSION:
            raise of_another_version(newer=int(state.layout) >= READABLE.stop)
        lost, self._newest = state.generation < self._newest, state.generation
        self._number += lost
        if lost or self._catalog.version != state.catalog:
            self._catalog = Catalog(state.catalog)
        return (self._number, state.generation, state.epoch), self._catalog

    def _loan(self, opening: Sequence[Statement], deadline: Deadline, stack: ExitStack) -> Begun:
        """A transaction on a replica that has caught up, or a future one on the primary.

        Every request queries the primary, so a grant that was revoked there has ended.
        """
        if self._replicas is not None:
            with self._pool.loan(deadline) as primary:
                ((row,),) = primary.run(opening[-1])
            if begun := next(self._replicas).begun(opening, StoreState(*row), stack):
                return begun
        return stack.enter_context(self._pool.loan(deadline)), []

    def number(self) -> int:
        return self._number

    def require_index(self, snapshot: Snapshot) -> None:
        """Does nothing: PostgreSQL checks its indexes itself."""

    def close(self) -> None:
        self._pool.close()
