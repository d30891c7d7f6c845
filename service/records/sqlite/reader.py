"""Read-only connections, one per thread, which reopen a replaced file; one snapshot per request."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from weakref import WeakSet

from evidence.cached import cached_property
from evidence.errors import EvidenceError, Unavailable
from evidence.fold import FOLD_VERSION
from evidence.limits import BUDGETS
from evidence.work import Deadline, check, within
from service.records.engine import failures
from service.records.sqlite.snapshot import SqliteSnapshot
from service import database_files
from service.records.engine import Generation
from service.records.sqlite.ddl import NEWEST
from service.records.sqlite.exact import add_functions
from service.records.sqlite.index_check import IndexRow, missing, sample

if TYPE_CHECKING:
    from service.records.sqlite.scoring import Scorers

# Virtual machine steps between two clock checks: about a fifth of a millisecond.
STEPS_BETWEEN_CHECKS = 20_000
STATEMENTS_CACHED = 256
MMAP_BYTES = 1 << 31
CORRUPT_INDEX = sqlite3.SQLITE_CORRUPT_VTAB

_numbers = count()


class Stamp(NamedTuple):
    """Attributes that change when a file is replaced or written to."""

    file: tuple[int, int]
    changed: int
    size: int


class _Database(sqlite3.Connection):
    """Checks the deadline before each statement, because many short ones add up."""

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        check("reading the store")
        return super().execute(*statement)


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Connection:
    """A connection of one thread, and the stamp of the file when it was opened.

    `epoch` is that of the last commit of records that it has read; see `ddl`.
    """

    db: sqlite3.Connection
    number: int
    stamp: Stamp
    epoch: str


class Reader:
    """Opens read-only snapshots of the store at `path`. Safe to share between threads.

    Nobody writes to a `fixed` file, and reading it leaves no files next to it. Every snapshot reads
    the file that is at `path` at the time. All connections to a replaced file are closed before the
    first one to the new file is opened, because they share locks on the files next to it. A
    connection is reopened when its file was written to, because a copy over the store and a
    checkpoint look the same.
    """

    def __init__(self, path: Path, *, fixed: bool = False) -> None:
        self.path = path
        self._mode = "mode=ro&immutable=1" if fixed else "mode=ro"
        self._fixed = fixed
        self._local = threading.local()
        self._gate = threading.Condition()
        self._file: tuple[int, int] | None = None
        self._in_use = 0
        self._open_now: WeakSet[_Connection] = WeakSet()
        self._sampling = threading.Lock()
        self._next_sample: Deadline | None = None
        #: Rows that a sample did not find. The next sample looks for them again, so that damage
        #: stays known until it is repaired.
        self._missing: list[IndexRow] = []
        self.ranks = False

    @cached_property
    def _scorers(self) -> "Scorers":
        from service.records.sqlite.scoring import Scorers

        return Scorers()

    @contextmanager
    def snapshot(self, seconds: float = BUDGETS.store_seconds) -> Iterator[SqliteSnapshot]:
        """One consistent view of the store; statements past `seconds` raise `TimedOut`."""
        with self.connection(seconds) as db:
            generation = self._generation(db)
            scoring = self._scorers(db, generation[-1]) if self.ranks else None
            yield SqliteSnapshot(db, generation, scoring)

    @contextmanager
    def connection(self, seconds: float = BUDGETS.store_seconds) -> Iterator[sqlite3.Connection]:
        """The same as a connection inside a transaction."""
        try:
            with within(seconds) as deadline:
                db = self._enter().db
                try:
                    db.set_progress_handler(deadline.expired, STEPS_BETWEEN_CHECKS)
                    db.execute("BEGIN")
                    try:
                        yield db
                    finally:
                        db.set_progress_handler(None, 0)
                        db.rollback()
                finally:
                    self._leave()
        except sqlite3.DatabaseError as error:
            if not _is_interrupted(error):
                self.close()  # it may have cached pages of a file that was overwritten
            raise _translate(error) from error

    def _generation(self, db: sqlite3.Connection) -> Generation:
        """Changes with each commit of records; differs between connections.

        In a store that no writer of this version has opened, it changes with every commit.
        """
        current: _Connection = self._local.current
        if epoch := _epoch(db):
            current.epoch = epoch
            return current.number, 0, epoch
        return current.number, db.execute("PRAGMA data_version").fetchone()[0], ""

    def require_index(self, snapshot: SqliteSnapshot) -> None:
        """Raises `Unavailable` if a sample has shown damage; takes one if it is time."""
        if self._next_sample is None or self._next_sample.expired():
            with self._sampling:
                if self._next_sample is None or self._next_sample.expired():
                    places = [*self._missing, *sample(snapshot.db, BUDGETS.index_check_rows)]
                    self._missing = missing(snapshot.db, places)
                    self._next_sample = Deadline.after(BUDGETS.index_check_seconds)
        if self._missing:
            raise failures.index_damaged()

    def number(self) -> int:
        """The number of this thread's connection.

        It changes when the file is reopened, unless the records are the same.
        """
        try:
            number = self._enter().number
        except sqlite3.DatabaseError as error:
            raise _translate(error) from error
        self._leave()
        return number

    def close(self) -> None:
        """Closes this thread's connection."""
        current: _Connection | None = getattr(self._local, "current", None)
        if current is not None:
            current.db.close()
            self._local.current = None

    def _enter(self) -> _Connection:
        """A connection to the file at the path; `_leave` ends its use.

        After a replacement, waits until nobody uses the old file.
        """
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise failures.absent() from error
        stamp = Stamp((status.st_dev, status.st_ino), status.st_ctime_ns, status.st_size)
        with self._gate:
            if self._file != stamp.file:
                self._gate.wait_for(
                    lambda: self._file == stamp.file or not self._in_use, BUDGETS.store_seconds
                )
                if self._file != stamp.file:
                    self._switch(stamp.file)
            self._in_use += 1
        try:
            return self._connection(stamp)
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        with self._gate:
            self._in_use -= 1
            if not self._in_use:
                self._gate.notify_all()

    def _switch(self, file: tuple[int, int]) -> None:
        if self._in_use:
            raise Unavailable(
                "The store was replaced while a long request was reading the old file. Try again.",
                code="store_unavailable",
            )
        for connection in list(self._open_now):
            connection.db.close()
        self._open_now.clear()
        self._local = threading.local()
        self._file = file

    def _connection(self, stamp: Stamp) -> _Connection:
        current: _Connection | None = getattr(self._local, "current", None)
        if current is None or current.stamp != stamp:
            self.close()
            db = self._open()
            epoch = _epoch(db)
            same = current is not None and epoch and epoch == current.epoch
            number = current.number if current is not None and same else next(_numbers)
            current = self._local.current = _Connection(db, number, stamp, epoch)
            with self._gate:
                self._open_now.add(current)
        return current

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            f"file:{quote(str(self.path))}?{self._mode}",
            uri=True,
            isolation_level=None,
            factory=_Database,
            cached_statements=STATEMENTS_CACHED,
            check_same_thread=False,
        )
        try:
            if not self._fixed:
                database_files.forget_stale_index(db, self.path)
            _check_layout(db)
            add_functions(db)
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("PRAGMA query_only = ON")
            db.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
        except BaseException:
            db.close()
            raise
        return db


def _check_layout(db: sqlite3.Connection) -> None:
    """Raises `Unavailable` for a store with another layout or another fold version."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    fold = db.execute("SELECT value FROM meta WHERE key = 'fold_version'").fetchone()
    if version != NEWEST or fold is None or fold[0] != FOLD_VERSION:
        raise failures.of_another_version(newer=version > NEWEST)


def _epoch(db: sqlite3.Connection) -> str:
    row = db.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
    return row[0] if row else ""


def _is_interrupted(error: sqlite3.Error) -> bool:
    return "interrupted" in str(error)


def _translate(error: sqlite3.Error) -> EvidenceError:
    if _is_interrupted(error):
        return failures.timed_out()
    code, text = getattr(error, "sqlite_errorcode", None), str(error)
    if code == CORRUPT_INDEX or "vtable" in text or "fts5" in text:
        return failures.index_damaged()
    if code is not None and code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return failures.locked_away()
    if isinstance(error, sqlite3.OperationalError):
        return failures.absent()
    return failures.unreadable()
