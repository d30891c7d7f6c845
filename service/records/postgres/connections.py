"""Connections to the database: a pool for readers, one connection for a writer, errors explained.

Nothing of a session is relied on: no prepared statements, no settings beyond a transaction. So a
pooler such as pgbouncer may stand between, and give every transaction another connection.
"""

import logging
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from evidence.errors import EvidenceError, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.records.failures import absent, busy, timed_out, unreadable

# Without a handler of its own it would write to the terminal of a command.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

Connection = psycopg.Connection[tuple[Any, ...]]

#: Connections of one process; requests share them.
POOL_MOST: Final = 8
#: Seconds after which a connection that nobody needs is closed, and until connecting is given up.
IDLE_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 3
CLOSE_SECONDS: Final = 2.0
_OPTIONS: Final[dict[str, Any]] = {
    "application_name": "rung",
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": int(BUDGETS.store_seconds * 1_000),
}


def connect(url: str) -> Connection:
    """A connection of one's own, in which every statement is a transaction unless one is begun."""
    return psycopg.connect(url, autocommit=True, prepare_threshold=None, **_OPTIONS)


#: What a server that does not answer raises.
ERRORS: Final = (psycopg.Error, PoolTimeout, PoolClosed, TooManyRequests)


class Pool:
    """Connections that threads share. It opens with the first use in a process, after the fork."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._process = 0
        self._pool: ConnectionPool[Connection] | None = None

    @contextmanager
    def begun(self, statement: str, deadline: Deadline) -> Iterator[tuple[Connection, Any]]:
        """A connection with what a statement that begins a transaction gives; rolled back after.

        A connection that was lost while nobody used it is replaced; nothing was asked of it yet.
        """
        pool = self._opened()
        while True:
            db = pool.getconn(timeout=deadline.left())
            try:
                try:
                    first = db.execute(statement)
                    while first.nextset():
                        pass
                except psycopg.OperationalError:
                    if db.broken and not deadline.expired():
                        continue
                    raise
                yield db, first.fetchone()
                return
            finally:
                with suppress(psycopg.Error):
                    db.rollback()
                pool.putconn(db)

    def close(self) -> None:
        """Closes all connections of this process."""
        with self._lock:
            if self._pool is not None and self._process == os.getpid():
                self._pool.close(CLOSE_SECONDS)
            self._pool = None

    def _opened(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._pool is None or self._process != os.getpid():
                options = {"autocommit": True, "prepare_threshold": None, **_OPTIONS}
                self._pool = pool = ConnectionPool[Connection](
                    self._url,
                    kwargs=options,
                    min_size=0,
                    max_size=POOL_MOST,
                    max_idle=IDLE_SECONDS,
                    reconnect_timeout=CONNECT_SECONDS,
                    open=True,
                )
                self._process = os.getpid()
                weakref.finalize(self, _close, pool, self._process)
            return self._pool


def _close(pool: ConnectionPool[Connection], process: int) -> None:
    if process == os.getpid():
        pool.close(CLOSE_SECONDS)


@contextmanager
def explained() -> Iterator[None]:
    """Turns errors of the database into errors that say what to do."""
    try:
        yield
    except ERRORS as error:
        raise translated(error) from error


def translated(error: Exception) -> EvidenceError:
    """An error of the database as a client may see it: without an address or a statement."""
    if isinstance(error, psycopg.errors.QueryCanceled):
        return timed_out()
    if isinstance(error, (psycopg.errors.UndefinedTable, psycopg.errors.InvalidCatalogName)):
        return absent()
    if isinstance(error, (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable)):
        return busy()
    code = getattr(error, "sqlstate", None)
    if isinstance(error, psycopg.Error) and code and code[:2] not in ("08", "40", "53", "57"):
        return unreadable()
    return Unavailable("The database does not answer. Try again.", code="store_unavailable")
