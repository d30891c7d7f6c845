"""The sidecar of a store: small tables that change often, so that an import never delays them.

    with sidecar.transaction(writes=False) as rows:
        ((seen,),) = rows("SELECT seen FROM access_clock WHERE id = ?", 1)

For a store file, the sidecar is the SQLite file `<store>.access`. For a store in PostgreSQL, it is
several tables in the same database. Both engines share the SQL of statements, with `?` for values.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from evidence.errors import Unavailable
from evidence.work import Deadline
from service.place import Database, Place
from service.records.access_tables import SCRIPTS

#: Runs a statement with its values and returns all rows.
Rows = Callable[..., list[tuple[Any, ...]]]

BUSY_SECONDS: Final = 5
#: A lock is given up before its statement, so that a client is told to try again.
_LIMITS: Final = (
    f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'",
    f"SET LOCAL statement_timeout = '{2 * BUSY_SECONDS}s'",
)


class Sidecar:
    """The sidecar of one store. Opens nothing until it is used. Safe to share between threads.

    On a read-only disk, and for a `fixed` store, it is off: every transaction
    raises `Unavailable` (`access_off`) with the reason.
    """

    def __init__(self, place: Place, *, fixed: bool = False) -> None:
        self.place, self._fixed = place, fixed
        self._local = threading.local()
        self._pool: Any = None
        self._begin = self._in_file
        if isinstance(place, Database):
            from service.records.postgres.connections import Pool

            self._pool, self._begin = Pool(place.url), self._in_database
        else:
            self.path, self._store = Path(f"{place}.access"), place

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[Rows]:
        """One transaction. Its writes are durable if it ends without an exception.

        Without `writes` it reads one snapshot and waits for no writer. Raises `Unavailable` if the
        sidecar is off, or still busy after `BUSY_SECONDS`.
        """
        if self._fixed:
            raise _off("the store is a read-only download")
        with self._begin(writes) as rows:
            yield rows

    @contextmanager
    def _in_database(self, writes: bool) -> Iterator[Rows]:
        from service.records.postgres.connections import explained

        opening = [("BEGIN" if writes else "BEGIN READ ONLY", ()), *((one, ()) for one in _LIMITS)]
        with explained(), self._pool.loan(Deadline.after(BUSY_SECONDS)) as loan:
            loan.run(*opening)
            yield lambda sql, *values: loan.run((sql.replace("?", "%s"), values))[0]
            loan.db.commit()

    @contextmanager
    def _in_file(self, writes: bool) -> Iterator[Rows]:
        try:
            db = self._connection()
            db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                yield lambda sql, *values: db.execute(sql, values).fetchall()
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
        kept = getattr(self._local, "kept", None)
        if kept is not None:
            self._local.kept = None
            kept[1].close()
        if self._pool is not None:
            self._pool.close()

    def _connection(self) -> sqlite3.Connection:
        """Returns this thread's connection; reopens it if the file was replaced."""
        if not self.path.exists():
            self._make()
        seen = os.stat(self.path)
        stamp = os.getpid(), seen.st_dev, seen.st_ino
        kept: tuple[Any, sqlite3.Connection] | None = getattr(self._local, "kept", None)
        if kept is None or kept[0] != stamp:
            self._local.kept = kept = stamp, _opened(self.path)
        return kept[1]

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


def _version(db: sqlite3.Connection) -> int:
    with closing(db.execute("PRAGMA user_version")) as rows:
        return int(rows.fetchone()[0])


def _off(why: str) -> Unavailable:
    return Unavailable(f"Access data cannot be written: {why}.", code="access_off")
