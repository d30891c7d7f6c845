"""Opens one snapshot file read-only, without creating files next to it."""

import hashlib
import os
import queue
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from evidence.errors import TimedOut, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.papers import layout
from service.papers.disk import SnapshotRefused, Stamp, look, mark, reason, whole

__all__ = ["Snapshot", "SnapshotRefused", "open_snapshot"]

T = TypeVar("T")

# All are opened at once: one opened later could meet another file under the same name.
CONNECTIONS = 4
STEPS_BETWEEN_CHECKS = 20_000
STATEMENTS_CACHED = 256
TAG_DIGITS = 10


class Snapshot:
    """One generation of papers. Safe to share between threads, not with a forked process.

    `tag` is a digest of the content: equal for the same file on two hosts, different after any
    change. The connections close with the last reference to the snapshot.
    """

    def __init__(
        self,
        *,
        stamp: Stamp,
        digest: bytes,
        build_id: str,
        papers: int,
        columns: layout.Columns,
        connections: list[sqlite3.Connection],
        source: int,
    ) -> None:
        self.stamp = stamp
        self.tag = digest.hex()[:TAG_DIGITS]
        self.fence_key = hashlib.sha256(b"rung papers fence\0" + digest).digest()
        self.build_id = build_id
        self.papers = papers
        self.columns = columns
        self.folder = Path(stamp.file).parent
        self._mark = mark(os.fstat(source))
        self._source = source
        self._process = os.getpid()
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        for db in connections:
            self._idle.put(db)
        self._held = threading.local()
        self._values: dict[str, Any] = {}
        self._building = threading.RLock()
        self._closed = False
        self._release = weakref.finalize(self, _release, self._idle, source)
        self._release.atexit = False

    @contextmanager
    def connection(self, seconds: float = BUDGETS.store_seconds) -> Iterator[sqlite3.Connection]:
        """A read-only connection; statements past `seconds` raise `TimedOut`.

        Inside it the same thread gets the same connection again. Temporary tables may be made.
        Raises `Unavailable` (`snapshot_unavailable`) if the file cannot be read, or was
        written to meanwhile, which invalidates what was read.
        """
        held: sqlite3.Connection | None = getattr(self._held, "db", None)
        with _typed_errors():
            if held is not None:
                yield held
                return
            db = self._take()
            try:
                db.set_progress_handler(Deadline.after(seconds).expired, STEPS_BETWEEN_CHECKS)
                self._held.db = db
                yield db
            finally:
                self._held.db = None
                db.set_progress_handler(None, 0)
                self._give(db)
                if not self.intact():
                    raise _unavailable("The snapshot was overwritten while it was read.")

    def once(self, key: str, build: Callable[[], T]) -> T:
        """The result of `build`, computed once on first use within `store_seconds`."""
        if key not in self._values:
            # Always in this order, so that no thread waits for a connection with the lock held.
            with self.connection(), self._building:
                if key not in self._values:
                    self._values[key] = build()
        value: T = self._values[key]
        return value

    def intact(self) -> bool:
        """True if the open file is unmodified. Renaming or removing it is allowed."""
        return mark(os.fstat(self._source)) == self._mark

    def close(self) -> None:
        """Closes the connections; those in use when they are returned."""
        self._closed = True
        _close_all(self._idle)

    def _take(self) -> sqlite3.Connection:
        if self._closed or self._process != os.getpid():
            raise _unavailable("This snapshot is no longer open here.")
        try:
            return self._idle.get(timeout=BUDGETS.store_seconds)
        except queue.Empty:
            raise TimedOut("All connections to the snapshot are busy. Retry shortly.") from None

    def _give(self, db: sqlite3.Connection) -> None:
        self._idle.put(db)
        if self._closed:
            _close_all(self._idle)


def open_snapshot(path: Path) -> Snapshot:
    """Opens and checks a snapshot, all of it. Raises `SnapshotRefused`."""
    stamp = look(path)
    try:
        with whole(stamp) as file:
            return _open(file, stamp)
    except sqlite3.DatabaseError as error:
        raise SnapshotRefused("it is damaged") from error
    except OSError as error:
        raise SnapshotRefused(f"it cannot be opened: {reason(error)}") from error


def _open(file: Path, stamp: Stamp) -> Snapshot:
    layout.check_header(file)
    with ExitStack() as undo:
        source = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        undo.callback(os.close, source)
        connections = [undo.enter_context(closing(_connect(file))) for _ in range(CONNECTIONS)]
        db = connections[0]
        columns = layout.read_columns(db)
        build_id = layout.read_build_id(db)
        layout.check_content(db, columns)
        layout.check_values(db, columns)
        (papers,) = db.execute("SELECT count(*) FROM paper").fetchone()
        with open(source, "rb", closefd=False) as content:
            digest = hashlib.file_digest(content, "sha256").digest()
        undo.pop_all()
    return Snapshot(
        stamp=stamp,
        digest=digest,
        build_id=build_id,
        papers=papers,
        columns=columns,
        connections=connections,
        source=source,
    )


def _connect(file: Path) -> sqlite3.Connection:
    """A connection that cannot write. No memory map: a file cut under one kills the process."""
    db = sqlite3.connect(
        f"{file.as_uri()}?mode=ro&immutable=1",
        uri=True,
        isolation_level=None,
        cached_statements=STATEMENTS_CACHED,
        check_same_thread=False,
    )
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    db.execute("PRAGMA temp_store = MEMORY")
    return db


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if "interrupted" in str(error):
            raise TimedOut("The search took too long. Use fewer or rarer words.") from error
        raise _unavailable("The snapshot cannot be read.") from error


def _unavailable(what: str) -> Unavailable:
    return Unavailable(f"{what} Retry shortly.", code="snapshot_unavailable")


def _release(idle: "queue.LifoQueue[sqlite3.Connection]", source: int) -> None:
    _close_all(idle)
    os.close(source)


def _close_all(idle: "queue.LifoQueue[sqlite3.Connection]") -> None:
    while True:
        try:
            idle.get_nowait().close()
        except queue.Empty:
            return
