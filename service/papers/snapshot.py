"""Opens a snapshot read-only, without creating files, and opens it again if it is replaced."""

import hashlib
import logging
import os
import queue
import sqlite3
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from evidence.errors import TimedOut, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline, within
from service.papers import snapshot_file
from service.papers.snapshot_file import SnapshotRefused, Stamp, look, mark, reason, whole

__all__ = ["Snapshot", "SnapshotRefused", "open_snapshot"]

T = TypeVar("T")
P = ParamSpec("P")

# All are opened at once: one opened later could open another file under the same name.
CONNECTIONS = 4
STEPS_BETWEEN_CHECKS = 20_000
STATEMENTS_CACHED = 256
TAG_DIGITS = 10


class Snapshot:
    """One generation of papers. Safe to share between threads, not with a forked process.

    `tag` is the beginning of the digest `sha256` of the content: equal for the same file on two
    hosts, different after any change. The connections are closed with the last reference to the
    snapshot.
    """

    def __init__(self, file: Path, stamp: Stamp) -> None:
        """Opens and checks a whole `file`, which has the content of the stamped file."""
        snapshot_file.check_header(file)
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        with ExitStack() as undo:
            self._source = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            undo.callback(_release, self._idle, self._source)
            for _ in range(CONNECTIONS):
                self._idle.put(_connect(file))
            db = self._idle.queue[0]
            self.columns = snapshot_file.read_columns(db)
            self.build_id = snapshot_file.read_build_id(db)
            snapshot_file.check_content(db, self.columns)
            snapshot_file.check_values(db, self.columns)
            (self.papers,) = db.execute("SELECT count(*) FROM paper").fetchone()
            with open(self._source, "rb", closefd=False) as content:
                digest = hashlib.file_digest(content, "sha256").digest()
            undo.pop_all()
        self.stamp = stamp
        self.sha256 = digest.hex()
        self.tag = self.sha256[:TAG_DIGITS]
        self.fence_key = hashlib.sha256(b"rung papers fence\0" + digest).digest()
        self.folder = Path(stamp.file).parent
        self._mark = mark(os.fstat(self._source))
        self._process = os.getpid()
        self._of_thread = threading.local()
        self._values: dict[Hashable, Any] = {}
        self._building = threading.RLock()
        self._closed = False
        self._release = weakref.finalize(self, _release, self._idle, self._source)
        self._release.atexit = False

    @contextmanager
    def connection(self, seconds: float = BUDGETS.store_seconds) -> Iterator[sqlite3.Connection]:
        """A read-only connection; statements past `seconds` raise `TimedOut`.

        Nested calls in the same thread get the same connection. Temporary tables may be created.
        Raises `Unavailable` (`snapshot_unavailable`) if the file cannot be read, or was
        written to meanwhile, which invalidates what was read.
        """
        outer: sqlite3.Connection | None = getattr(self._of_thread, "db", None)
        with _convert_errors():
            if outer is not None:
                yield outer
                return
            with within(seconds) as deadline:
                db = self._take(deadline)
                try:
                    db.set_progress_handler(deadline.expired, STEPS_BETWEEN_CHECKS)
                    self._of_thread.db = db
                    yield db
                finally:
                    self._of_thread.db = None
                    db.set_progress_handler(None, 0)
                    self._idle.put(db)
                    if self._closed:
                        _close_all(self._idle)
                    if not self.intact():
                        raise _unavailable("The snapshot was overwritten while it was being read.")

    def once(self, key: Hashable, build: Callable[[], T]) -> T:
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
        """Closes the connections; those in use are closed when they are returned."""
        self._closed = True
        _close_all(self._idle)

    def _take(self, deadline: Deadline) -> sqlite3.Connection:
        if self._closed or self._process != os.getpid():
            raise _unavailable("This snapshot is no longer open in this process.")
        try:
            return self._idle.get(timeout=deadline.left())
        except queue.Empty:
            raise TimedOut("All connections to the snapshot are busy. Retry shortly.") from None


def once(build: Callable[Concatenate[Snapshot, P], T]) -> Callable[Concatenate[Snapshot, P], T]:
    """Makes a function of a snapshot run once per snapshot and arguments."""

    @wraps(build)
    def cached(snapshot: Snapshot, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return snapshot.once((build, *args), lambda: build(snapshot, *args, **kwargs))

    return cached


def open_snapshot(path: Path) -> Snapshot:
    """Opens a snapshot and checks all of it. Raises `SnapshotRefused`."""
    stamp = look(path)
    try:
        with whole(stamp) as file:
            return Snapshot(file, stamp)
    except sqlite3.DatabaseError as error:
        raise SnapshotRefused("it is damaged") from error
    except OSError as error:
        raise SnapshotRefused(f"it cannot be opened: {reason(error)}") from error


def _connect(file: Path) -> sqlite3.Connection:
    """A connection that cannot write. No memory map: truncating a mapped file kills the process."""
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
def _convert_errors() -> Iterator[None]:
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


logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Refusal:
    """A refused file, and the time until which it is not checked again unless it changes."""

    stamp: Stamp | None
    reason: str
    until: Deadline = field(default_factory=lambda: Deadline.after(BUDGETS.snapshot_retry_seconds))

    def covers(self, stamp: Stamp) -> bool:
        """True if this file needs no new check."""
        return self.stamp == stamp and not self.until.expired()


@dataclass(slots=True)
class _Generations:
    """The state of one process. A forked process starts over: connections must not cross a fork."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    snapshot: Snapshot | None = None
    refusal: _Refusal | None = None
    loading: threading.Event | None = None


class Snapshots:
    """The generations of the file at `path`. Safe to share between threads and to fork."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of_process: dict[int, _Generations] = {}

    def current(self, tag: str | None = None) -> Snapshot:
        """The snapshot for one request; a newer file is opened in the background.

        `tag` is that in a cursor: if it is not the current one, it may belong to a newer
        file, which is waited for briefly. Raises `Unavailable` (`snapshot_unavailable`) with the
        reason if there is no usable snapshot.
        """
        state = self._state()
        loading = self._check(state)
        snapshot = _usable(state)
        if loading is not None:
            if snapshot is None:
                with within(BUDGETS.upstream_seconds) as deadline:
                    loading.wait(deadline.left())
            elif tag is not None and tag != snapshot.tag:
                loading.wait(BUDGETS.snapshot_wait_seconds)
            snapshot = _usable(state)
        if snapshot is None:
            raise _no_snapshot(state.refusal)
        return snapshot

    def status(self) -> dict[str, Any]:
        """{status, snapshot, papers}; `refused` gives the reason if the file is not served."""
        try:
            snapshot = self.current()
        except Unavailable as error:
            return {"status": "unavailable", "refused": error.details["reason"]}
        status = {"status": "ready", "snapshot": snapshot.build_id, "papers": snapshot.papers}
        refusal = self._state().refusal
        return {**status, "refused": refusal.reason} if refusal else status

    def _state(self) -> _Generations:
        process = os.getpid()
        generations = self._of_process.get(process)
        return generations or self._of_process.setdefault(process, _Generations())

    def _check(self, state: _Generations) -> threading.Event | None:
        """Starts opening the file if it has changed; returns the pending load, if any."""
        try:
            stamp = look(self._path)
        except SnapshotRefused as error:
            with state.lock:
                if state.loading is None:
                    state.refusal = _Refusal(None, str(error))
                return state.loading
        with state.lock:
            if state.snapshot is not None and state.snapshot.stamp == stamp:
                state.refusal = None
            elif state.loading is None and not (state.refusal and state.refusal.covers(stamp)):
                done = threading.Event()
                arguments = (state, stamp, done)
                threading.Thread(target=self._load, args=arguments, daemon=True).start()
                state.loading = done
            return state.loading

    def _load(self, state: _Generations, stamp: Stamp, done: threading.Event) -> None:
        opened, reason = None, "it could not be opened; see the log"
        try:
            opened = self._newest()
        except SnapshotRefused as error:
            reason = str(error)
            logger.warning("snapshot refused: %s", reason)
        finally:
            with state.lock:
                if opened is not None:
                    state.snapshot = opened
                state.refusal = None if opened is not None else _Refusal(stamp, reason)
                state.loading = None
            done.set()

    def _newest(self) -> Snapshot:
        """Opens the file, and opens it again if it was replaced meanwhile."""
        deadline = Deadline.after(BUDGETS.upstream_seconds)
        while True:
            before = look(self._path)
            try:
                return open_snapshot(self._path)
            except SnapshotRefused:
                if look(self._path) == before or deadline.expired():
                    raise


def _usable(state: _Generations) -> Snapshot | None:
    """The newest valid snapshot, unless its file was modified."""
    snapshot = state.snapshot
    return snapshot if snapshot is not None and snapshot.intact() else None


def _no_snapshot(refusal: _Refusal | None) -> Unavailable:
    if refusal is None:
        reason, advice = "it is still being opened", "Retry in a few seconds."
    else:
        reason, advice = refusal.reason, "The operator has to replace it with a valid snapshot."
    return Unavailable(
        f"The snapshot cannot be served: {reason}. {advice}",
        code="snapshot_unavailable",
        reason=reason,
    )
