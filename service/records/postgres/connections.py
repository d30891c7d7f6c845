"""Connections to the database: a pool for readers, one connection for a writer, and error texts.

Nothing depends on session state: no prepared statements, no settings beyond a transaction. So a
pooler such as pgbouncer can be used, which may give every transaction another connection.
"""

import logging
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, Final, Self

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from evidence.errors import EvidenceError, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline, waiting
from service.records.engine.failures import absent, busy, timed_out, unreadable

# Without its own handler it would write to the terminal of a command.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

Connection = psycopg.Connection[tuple[Any, ...]]
#: How long cancelling a statement may take.
CANCEL_SECONDS: Final = 0.5


class Cursor(psycopg.Cursor[tuple[Any, ...]]):
    """Runs statements whose parameters are `?`, as all engines share them, or `%s`."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        if params and isinstance(query, str):
            query = query.replace("?", "%s")
        return super().execute(query, params, **options)

    def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        super().executemany(query.replace("?", "%s"), params_seq, **options)


class PooledConnection(Connection):
    """A connection whose statements end at `deadline`, however many are sent together."""

    deadline: Deadline | None = None

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Waits for the server; past the deadline, cancels the statement and closes itself."""
        deadline = self.deadline
        if deadline is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, deadline.left())
        except psycopg.OperationalError:
            if not deadline.expired() or self.closed:
                raise
            with suppress(psycopg.Error):
                self.cancel_safe(timeout=CANCEL_SECONDS)
            self.pgconn.finish()
            raise timed_out() from None


#: SQL with its parameters, and its rows.
Statement = tuple[str, tuple[Any, ...]]
Rows = list[tuple[Any, ...]]

#: Connections of one process, shared by its requests.
POOL_MOST: Final = 8
#: Seconds after which an unused connection is closed, and after which connecting fails.
IDLE_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 3
CLOSE_SECONDS: Final = 2.0
_OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True,
    "prepare_threshold": None,
    "cursor_factory": Cursor,
    "application_name": "rung",
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": int(BUDGETS.store_seconds * 1_000),
}


def connect(url: str) -> Connection:
    """A separate connection in autocommit mode."""
    return psycopg.connect(url, **_OPTIONS)


#: The errors of a server that does not answer.
ERRORS: Final = (psycopg.Error, PoolTimeout, PoolClosed, TooManyRequests)


class Pool:
    """Connections that threads share. Opens on first use in a process, after the fork."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._process = 0
        self._pool: ConnectionPool[PooledConnection] | None = None
        #: Loans that a background thread ends, so that answers need not wait for it.
        self._pending: SimpleQueue[Loan | None] = SimpleQueue()

    @contextmanager
    def loan(self, deadline: Deadline) -> Iterator["Loan"]:
        """A connection for one transaction, which is rolled back unless it was committed."""
        loan = Loan(self._opened(), deadline)
        try:
            yield loan
        finally:
            if loan.is_idle:
                loan.end()
            else:
                self._pending.put(loan)

    def close(self) -> None:
        """Closes all connections of this process."""
        with self._lock:
            if self._pool is not None and self._process == os.getpid():
                _close(self._pool, self._pending, self._process)
            self._pool = None

    def _opened(self) -> ConnectionPool[PooledConnection]:
        with self._lock:
            if self._pool is None or self._process != os.getpid():
                self._pool = pool = ConnectionPool(
                    self._url,
                    connection_class=PooledConnection,
                    kwargs=_OPTIONS,
                    min_size=0,
                    max_size=POOL_MOST,
                    max_idle=IDLE_SECONDS,
                    reconnect_timeout=CONNECT_SECONDS,
                    open=True,
                )
                self._process, self._pending = os.getpid(), SimpleQueue()
                threading.Thread(target=_end, args=(self._pending,), daemon=True).start()
                weakref.finalize(self, _close, pool, self._pending, self._process)
            return self._pool


def _close(
    pool: ConnectionPool[PooledConnection], pending: "SimpleQueue[Loan | None]", process: int
) -> None:
    if process == os.getpid():
        pending.put(None)
        pool.close(CLOSE_SECONDS)


def _end(pending: "SimpleQueue[Loan | None]") -> None:
    """Ends loans until None comes."""
    for loan in iter(pending.get, None):
        loan.end()


class Loan:
    """A connection of a pool, taken by `deadline`, when the first statements run.

    Statements end at `limit`, if it is set.
    """

    limit: Deadline | None = None

    def __init__(self, pool: ConnectionPool[PooledConnection], deadline: Deadline) -> None:
        self._pool, self._deadline = pool, deadline
        self._db: PooledConnection | None = None

    @property
    def db(self) -> Connection:
        """The connection itself; statements must have run."""
        assert self._db is not None
        return self._db

    @property
    def is_idle(self) -> bool:
        """Whether there is no transaction to end."""
        return self._db is None or self._db.info.transaction_status == TransactionStatus.IDLE

    def run(self, *statements: Statement) -> list[Rows]:
        """The rows of each statement, all in one round trip.

        A connection that was lost while unused is replaced, because nothing was sent on it yet.
        """
        while self._db is None:
            self._db = db = self._pool.getconn(timeout=self._deadline.left())
            db.deadline = self.limit
            try:
                return _rows(db, statements)
            except psycopg.OperationalError:
                if not db.broken or self._deadline.expired():
                    raise
                self.end()
        self._db.deadline = self.limit
        return _rows(self._db, statements)

    def end(self) -> None:
        """Rolls back uncommitted changes, and returns the connection."""
        db, self._db = self._db, None
        if db is not None:
            db.deadline = None
            with suppress(psycopg.Error):
                db.rollback()
            self._pool.putconn(db)


def _rows(db: Connection, statements: Sequence[Statement]) -> list[Rows]:
    with waiting():
        if len(statements) == 1:
            return [_all(db.execute(*statements[0]))]
        with db.pipeline():
            cursors = [db.execute(*statement) for statement in statements]
        return [_all(cursor) for cursor in cursors]


def _all(cursor: psycopg.Cursor[tuple[Any, ...]]) -> Rows:
    return cursor.fetchall() if cursor.description else []


@contextmanager
def explained() -> Iterator[None]:
    """Turns errors of the database into errors that explain what to do."""
    try:
        yield
    except ERRORS as error:
        raise translated(error) from error


def translated(error: Exception) -> EvidenceError:
    """An error of the database for clients: without an address or a statement."""
    if isinstance(error, psycopg.errors.QueryCanceled):
        return timed_out()
    if isinstance(error, (psycopg.errors.UndefinedTable, psycopg.errors.InvalidCatalogName)):
        return absent()
    if isinstance(error, (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable)):
        return busy()
    code = getattr(error, "sqlstate", None)
    if isinstance(error, psycopg.Error) and code and code[:2] not in ("08", "40", "53", "57"):
        return unreadable()
    return Unavailable("The database is not responding. Try again.", code="store_unavailable")
