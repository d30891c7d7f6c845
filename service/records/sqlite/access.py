"""The tables of the sidecar, in a separate SQLite file: `<store>.access`."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evidence.errors import Unavailable
from service.access.port import BUSY_SECONDS, Begun, off
from service.access.tables import SCRIPTS


class AccessFile:
    """See `port.AccessTables`. It is off for a `fixed` store."""

    def __init__(self, store: Path, *, fixed: bool = False) -> None:
        self._store, self._fixed = store, fixed
        self._path = Path(f"{store}.access")
        self._local = threading.local()

    def exists(self) -> bool:
        return self._path.exists()

    def store_exists(self) -> bool:
        return self._store.exists()

    @contextmanager
    def begin(self, mark: str, *, writes: bool) -> Iterator[Begun]:
        if self._fixed:
            raise off("the store is a read-only download")
        try:
            db = self._connection()
            db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                ((seen,),) = db.execute(f"SELECT {mark}")
                run = lambda sql, *values: db.execute(sql, values).fetchall()  # noqa: E731
                yield Begun(run, datetime.now(UTC), seen)
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        except sqlite3.DatabaseError as error:
            self.close()
            if "locked" in str(error):
                raise Unavailable(
                    f"{self._path.name} has been busy for {BUSY_SECONDS} seconds. Try again.",
                    code="store_unavailable",
                ) from error
            raise off(f"{self._path.name}: {error}") from error
        except OSError as error:
            raise off(f"{self._path.name}: {error.strerror}") from error

    def close(self) -> None:
        """Closes this thread's connection."""
        stamped = getattr(self._local, "stamped", None)
        if stamped is not None:
            self._local.stamped = None
            stamped[1].close()

    def _connection(self) -> sqlite3.Connection:
        """Returns this thread's connection; reopens it if the file was replaced."""
        if not self._path.exists():
            self._make()
        file = os.stat(self._path)
        stamp = os.getpid(), file.st_dev, file.st_ino
        stamped: tuple[Any, sqlite3.Connection] | None = getattr(self._local, "stamped", None)
        if stamped is None or stamped[0] != stamp:
            self._local.stamped = stamped = stamp, _opened(self._path)
        return stamped[1]

    def _make(self) -> None:
        """Creates an empty file with the owner and permissions of the store."""
        store = os.stat(self._store)
        mode = store.st_mode & 0o666
        with suppress(FileExistsError):
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
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
            raise off(
                f"{path.name} was written by a newer version of Rung. Install that version or a "
                "later one"
            )
        return db
    except BaseException:
        db.close()
        raise


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
