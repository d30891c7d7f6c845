"""Reading connections: one per thread, kept open, read-only, every request one snapshot."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import quote

from evidence.errors import TimedOut, Unavailable
from evidence.fold import FOLD_VERSION
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.upstreams.store import terms
from service.upstreams.store.ddl import READABLE

# Virtual machine steps between two looks at the clock: about a fifth of a millisecond.
STEPS_BETWEEN_CHECKS = 20_000
STATEMENTS_CACHED = 256
MMAP_BYTES = 1 << 31

#: The number of a connection in this process, and SQLite's count of the commits it has noticed.
Generation = tuple[int, int]

_numbers = count()


class Reader:
    """Gives read-only snapshots of the store at `path`. Safe to share between threads.

    A `fixed` file is one that nobody writes to: reading it leaves nothing beside it.
    """

    def __init__(self, path: Path, *, fixed: bool = False) -> None:
        self.path = path
        self._mode = "mode=ro&immutable=1" if fixed else "mode=ro"
        self._local = threading.local()

    @contextmanager
    def snapshot(self, seconds: float = BUDGETS.store_seconds) -> Iterator[sqlite3.Connection]:
        """One consistent view of the store; statements past `seconds` raise `TimedOut`."""
        try:
            db = self._connection()
            deadline = Deadline.after(seconds)
            db.set_progress_handler(deadline.expired, STEPS_BETWEEN_CHECKS)
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.set_progress_handler(None, 0)
                db.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            raise _translate(error) from error
        except sqlite3.DatabaseError as error:
            raise Unavailable("The store cannot be read.", code="store_unavailable") from error

    def generation(self, db: sqlite3.Connection) -> Generation:
        """What changes when another connection has committed; of two connections never alike."""
        return self._local.number, db.execute("PRAGMA data_version").fetchone()[0]

    def close(self) -> None:
        """Closes this thread's connection."""
        db = getattr(self._local, "db", None)
        if db is not None:
            db.close()
            self._local.db = None

    def _connection(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = self._open()
            self._local.number = next(_numbers)
        return db

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            f"file:{quote(str(self.path))}?{self._mode}",
            uri=True,
            isolation_level=None,
            cached_statements=STATEMENTS_CACHED,
            check_same_thread=False,
        )
        _check_layout(db)
        terms.prepare(db)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA query_only = ON")
        db.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
        return db


def _check_layout(db: sqlite3.Connection) -> None:
    """Refuses a store that another version of the code wrote: words would be folded otherwise."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    fold = db.execute("SELECT value FROM meta WHERE key = 'fold_version'").fetchone()
    if version not in READABLE or fold is None or fold[0] != FOLD_VERSION:
        db.close()
        raise Unavailable(
            "The store was written by another version. Bring it up to date with `rung stats`.",
            code="store_unavailable",
        )


def _translate(error: sqlite3.OperationalError) -> Exception:
    if "interrupted" in str(error):
        return TimedOut(
            "The store took too long. Narrow the request by stream, connection or filter."
        )
    return Unavailable(
        "The store is not there or not readable. Import something with `rung import` first.",
        code="store_unavailable",
    )
