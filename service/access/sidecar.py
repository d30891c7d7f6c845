"""The sidecar of a store: small tables that change often, so that an import never delays them.

    with sidecar.transaction(writes=False) as rows:
        uses = rows("SELECT day, count FROM access_use WHERE grant_id = ?", "grt_1")
        rows.now

`now` decides every expiry. It is the latest time that a process has seen, the mark, if that is
later than the clock. A clock that is more than a minute behind the mark was set back: then whatever
the mark had ended is ended for good, all sessions end, and the mark becomes the clock.

For a store file, the sidecar is the SQLite file `<store>.access`. For a store in PostgreSQL, it is
several tables in the same database. Both engines share the SQL of statements, with `?` for values.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from evidence.errors import EvidenceError, Unavailable
from evidence.work import Deadline
from service.place import Database, Place
from service.records.access_tables import SCRIPTS

logger = logging.getLogger(__name__)

#: Ends the grants and packages of the store that had expired at a time, as of another time.
EndGrants = Callable[[datetime, datetime], None]

BUSY_SECONDS: Final = 5
#: A clock that is further behind the latest time seen was set back.
BEHIND: Final = timedelta(minutes=1)
#: How old the stored mark may be.
_MARK_AGE: Final = timedelta(seconds=1)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_MARK: Final = "(SELECT seen FROM access_clock WHERE id = 1)"
_RAISE: Final = (
    "INSERT INTO access_clock (id, seen) VALUES (1, ?) ON CONFLICT (id) DO UPDATE"
    " SET seen = excluded.seen WHERE access_clock.seen < excluded.seen"
)
_SET_BACK: Final = (
    "UPDATE access_clock SET seen = ? WHERE id = 1 AND seen = ? RETURNING id",
    "DELETE FROM access_entry WHERE kind = 'session' OR expires_at <= ?",
    # What is left keeps its remaining lifetime.
    "UPDATE access_entry SET expires_at = expires_at - ?, used_at = used_at - ?",
)
#: Waiting for a lock ends before the statement times out, so that the client is asked to try again.
_LIMITS: Final = (
    f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'",
    f"SET LOCAL statement_timeout = '{2 * BUSY_SECONDS}s'",
)


@dataclass(frozen=True, slots=True)
class Rows:
    """Runs statements of one transaction.

    `clock` is the time at its beginning, `ahead` how far it is ahead of this machine's, `mark` the
    latest time seen. `refusal` is raised instead of adding entries, which would live too long: the
    clock was set back, and grants could not be ended.
    """

    run: Callable[..., list[tuple[Any, ...]]]
    clock: datetime
    mark: datetime
    ahead: timedelta = timedelta()
    refusal: EvidenceError | None = None

    def __call__(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Runs a statement with its values and returns all rows."""
        return self.run(sql, *values)

    @property
    def now(self) -> datetime:
        """The time that decides every expiry."""
        return max(self.clock, self.mark)


class Sidecar:
    """The sidecar of one store. Opens nothing until it is used. Safe to share between threads.

    On a read-only disk, and for a `fixed` store, it is off: every transaction
    raises `Unavailable` (`access_off`) with the reason. Without `end_grants`, a clock that was set
    back has no effect until it reaches the mark.
    """

    def __init__(
        self, location: Place, *, fixed: bool = False, end_grants: EndGrants | None = None
    ) -> None:
        self.place, self._fixed, self._end_grants = location, fixed, end_grants
        self._local = threading.local()
        self._pool: Any = None
        self._begin = self._in_file
        if isinstance(location, Database):
            from service.records.postgres.connections import Pool

            self._pool, self._begin = Pool(location.url), self._in_database
        else:
            self.path, self._store = Path(f"{location}.access"), location

    def exists(self) -> bool:
        """Whether the file was created, or a database may have the tables."""
        return isinstance(self.place, Database) or self.path.exists()

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[Rows]:
        """One transaction.

        Its writes are durable if it ends without an exception. Without `writes` it reads one
        snapshot and does not wait for writers. Raises `Unavailable` if the sidecar is off, or still
        busy after `BUSY_SECONDS`.
        """
        if self._fixed:
            raise _off("the store is a read-only download")
        with ExitStack() as stack:
            rows = stack.enter_context(self._begin(writes))
            if writes and rows.mark - rows.clock > BEHIND and self._end_grants:
                stack.close()
                refusal = self._set_back(rows.mark, rows.clock, self._end_grants)
                rows = replace(stack.enter_context(self._begin(writes)), refusal=refusal)
            if writes and rows.clock - rows.mark >= _MARK_AGE:
                rows(_RAISE, _text(rows.clock))
            yield rows

    def _set_back(
        self, mark: datetime, clock: datetime, end_grants: EndGrants
    ) -> EvidenceError | None:
        """Makes the clock the mark. Returns the reason if grants cannot be ended.

        Grants end first, so that nothing is valid again if this process is killed in between.
        """
        try:
            end_grants(mark, clock)
        except EvidenceError as error:
            return error
        back = int((mark - clock).total_seconds())
        raised, expired, shifted = _SET_BACK
        with self._begin(True) as rows:
            if rows(raised, _text(clock), _text(mark)):  # no other process was first
                rows(expired, int(mark.timestamp()))
                rows(shifted, back, back)
                logger.warning(
                    f"The clock was set back from {mark:%Y-%m-%d %H:%M} to {clock:%Y-%m-%d %H:%M} "
                    "UTC. What had expired stays expired, and sessions of the owner have ended."
                )
        return None

    @contextmanager
    def _in_database(self, writes: bool) -> Iterator[Rows]:
        from service.records.postgres.connections import explained

        begin = "BEGIN" if writes else "BEGIN READ ONLY"
        opening = [(sql, ()) for sql in (begin, *_LIMITS, f"SELECT {_MARK}, clock_timestamp()")]
        with explained(), self._pool.loan(Deadline.after(BUSY_SECONDS)) as loan:
            ((mark, clock),) = loan.run(*opening)[-1]
            run = lambda sql, *values: loan.run((sql.replace("?", "%s"), values))[0]  # noqa: E731
            yield Rows(run, clock, _time(mark), clock - datetime.now(UTC))
            loan.db.commit()

    @contextmanager
    def _in_file(self, writes: bool) -> Iterator[Rows]:
        try:
            db = self._connection()
            db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                ((mark,),) = db.execute(f"SELECT {_MARK}")
                run = lambda sql, *values: db.execute(sql, values).fetchall()  # noqa: E731
                yield Rows(run, datetime.now(UTC), _time(mark))
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        except sqlite3.DatabaseError as error:
            self.close()
            if "locked" in str(error):
                raise Unavailable(
                    f"{self.path.name} has been busy for {BUSY_SECONDS} seconds. Try again.",
                    code="store_unavailable",
                ) from error
            raise _off(f"{self.path.name}: {error}") from error
        except OSError as error:
            raise _off(f"{self.path.name}: {error.strerror}") from error

    def close(self) -> None:
        """Closes this thread's connection to a file, or the pool of a database."""
        stamped = getattr(self._local, "stamped", None)
        if stamped is not None:
            self._local.stamped = None
            stamped[1].close()
        if self._pool is not None:
            self._pool.close()

    def _connection(self) -> sqlite3.Connection:
        """Returns this thread's connection; reopens it if the file was replaced."""
        if not self.path.exists():
            self._make()
        file = os.stat(self.path)
        stamp = os.getpid(), file.st_dev, file.st_ino
        stamped: tuple[Any, sqlite3.Connection] | None = getattr(self._local, "stamped", None)
        if stamped is None or stamped[0] != stamp:
            self._local.stamped = stamped = stamp, _opened(self.path)
        return stamped[1]

    def _make(self) -> None:
        """Creates an empty file with the owner and permissions of the store."""
        store = os.stat(self._store)
        mode = store.st_mode & 0o666
        with suppress(FileExistsError):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
            with suppress(OSError):
                os.fchown(file, store.st_uid, store.st_gid)
            os.close(file)


def _opened(path: Path) -> sqlite3.Connection:
    """Opens the file and brings its tables up to date."""
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        if _version(db) != len(SCRIPTS):
            db.execute("BEGIN IMMEDIATE")
            for number, script in enumerate(SCRIPTS[_version(db) :], start=_version(db) + 1):
                for statement in script.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        if _version(db) > len(SCRIPTS):
            raise _off(f"{path.name} was written by a newer Rung. Install that version or later")
        return db
    except BaseException:
        db.close()
        raise


def _text(at: datetime) -> str:
    """A time in the form of the mark, which sorts as text."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _time(mark: str | None) -> datetime:
    return datetime.fromisoformat(mark) if mark else _NEVER


def _version(db: sqlite3.Connection) -> int:
    with closing(db.execute("PRAGMA user_version")) as rows:
        return int(rows.fetchone()[0])


def _off(why: str) -> Unavailable:
    return Unavailable(f"Access data cannot be written: {why}.", code="access_off")
