"""Replaces an SQLite database file, and finds the files that the replaced database left behind.

SQLite keeps a log (`-wal`), an index of the log (`-shm`) or a journal next to a database and finds
them by path. A file that is copied over the database, or renamed into its place, inherits them. So
`replacing` is the only way in which Rung installs a database file.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from evidence.errors import Unavailable
from evidence.work import Deadline
from service import durable

#: What SQLite leaves next to a file: a log and a journal have content, an index of the log has not.
LOGS: Final = ("-wal", "-journal")
BESIDE: Final = (*LOGS, "-shm")
#: Raised for a file that is damaged or no database.
DAMAGE: Final = sqlite3.DatabaseError
#: Seconds to wait for writers, and for readers of a log that should become empty.
LOCK_SECONDS, LOG_SECONDS = 30, 1
#: How often the log of a file that is replaced is tried to be emptied.
ATTEMPTS: Final = 20

#: Two copies of the header of the index of the log; see "WAL-mode File Format" of SQLite.
INDEX_HEADER_BYTES: Final = 96
#: Seconds between two checks whether it is a writer's turn.
TURN_SECONDS: Final = 0.01

#: Closing a file releases all locks of this process on it, including SQLite's, so these are never
#: closed.
_descriptors: dict[tuple[int, int], int] = {}


def file_at(path: Path) -> tuple[int, int]:
    """The file that a path names; raises `OSError` if there is none."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def forget_stale_index(db: sqlite3.Connection, path: Path) -> None:
    """Makes SQLite reread the log if its index belongs to an earlier file at `path`.

    The index contains the size of the store. With an empty log that must be the size of the file.
    Every connection recovers from an empty header, as after a crash.
    """
    if _fits(db, path):
        return
    with suppress(OSError):
        os.pwrite(_keep_open(Path(f"{path}-shm")), bytes(INDEX_HEADER_BYTES), 0)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keeps other processes from replacing streams of the store, or all of it, meanwhile.

    Imports and grants continue. The kernel releases the lock when the process ends.
    """
    file = _keep_open(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Unavailable(
            "Another process is replacing, removing, restoring or repairing data in "
            f"{path}. Wait until it has finished, or stop it, and then run the command again."
        ) from error
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def in_turn(path: Path, seconds: float) -> Iterator[Deadline]:
    """Lets writers of the store begin one after the other, if the wait is at most `seconds`.

    Yields the remaining seconds for the lock itself.

    Waiting for SQLite's lock means polling it ten times a second. A writer of many short
    transactions would take it between two polls. So a waiting writer keeps others from beginning.
    """
    pause, deadline = threading.Event(), Deadline.after(seconds)
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError:  # its entries cannot be read
        yield deadline
        return
    try:
        while not deadline.expired():
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pause.wait(TURN_SECONDS)
            except OSError:  # a file system without locks
                break
        yield deadline
    finally:
        os.close(folder)


def _keep_open(path: Path) -> int:
    """A descriptor of the file at `path`."""
    file = file_at(path)
    if file not in _descriptors:
        _descriptors[file] = os.open(path, os.O_RDWR)
    return _descriptors[file]


def _fits(db: sqlite3.Connection, path: Path) -> bool:
    with suppress(FileNotFoundError):
        if os.stat(f"{path}-wal").st_size:
            return True
    try:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    except DAMAGE as error:
        return getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_CORRUPT
    return bool(pages * size == os.stat(path).st_size)


def replace(draft: Path, target: Path) -> None:
    """Replaces the database file `target` with `draft`; see `replacing`."""
    with replacing(draft, target):
        pass


@contextmanager
def replacing(draft: Path, target: Path) -> Iterator[sqlite3.Connection]:
    """Replaces the database file `target`, if there is one, with `draft`.

    Inside, nobody else writes to the old file, which the yielded connection reads, and the draft
    may still change. A process that is killed leaves the old file or the new one, each whole. The
    draft must be on the same file system, and nobody else may use it. Raises `Unavailable`, having
    changed nothing, if others use the old file all the time.
    """
    complete(draft)
    with closing(_old_file(target)) as old, _locked(old, target):
        yield old
        complete(draft)
        durable.move(draft, target)
    # As a reader would open it. As the last to close it, SQLite removes the empty log of the old.
    with closing(sqlite3.connect(_uri(target), uri=True)) as new:
        forget_stale_index(new, target)
        if not _fits(new, target):
            raise Unavailable(f"{target} differs from what was written. Run the command again.")


def complete(path: Path) -> None:
    """Moves the log of a database that nobody else uses into its file, and syncs the file.

    Raises `DAMAGE`.
    """
    if any(log.exists() and log.stat().st_size for log in _beside(path, LOGS)):
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()  # rolls a journal back
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    remove_beside(path)
    durable.sync(path)


def remove_beside(path: Path) -> None:
    """Removes what SQLite left next to a database that nobody uses."""
    for file in _beside(path, BESIDE):
        file.unlink(missing_ok=True)


def _beside(path: Path, endings: tuple[str, ...]) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in endings]


def _uri(path: Path) -> str:
    return f"file:{quote(str(path))}?mode=rw"


def _old_file(path: Path) -> sqlite3.Connection:
    """A connection to the file that is replaced; to an empty database if there is none."""
    name = _uri(path) if path.exists() else ":memory:"
    return sqlite3.connect(name, uri=True, isolation_level=None, timeout=LOCK_SECONDS)


@contextmanager
def _locked(old: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Keeps others from writing to a file with an empty log, and from emptying its log."""
    pause = threading.Event()
    with ExitStack() as turn:
        try:
            old.execute("PRAGMA wal_checkpoint(PASSIVE)")  # while others write
            for _ in range(ATTEMPTS):
                # In turn, so that a writer of many short transactions does not come in between.
                turn.enter_context(in_turn(path, LOCK_SECONDS))
                if _begin(old, path):
                    break
                turn.close()
                pause.wait(LOG_SECONDS)  # lets the others have a turn
            else:
                raise Unavailable(f"{path} is in constant use by other processes. Try again later.")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise Unavailable(
                f"Another process has been writing to {path} for {LOCK_SECONDS} seconds. Wait "
                "until it has finished, or stop it, and then try again.",
                code="store_unavailable",
            ) from error
        except DAMAGE:
            remove_beside(path)  # no database, with or without its log: nobody writes to it
        yield
        with suppress(sqlite3.Error):
            old.execute("ROLLBACK")


def _begin(old: sqlite3.Connection, path: Path) -> bool:
    """Begins a write transaction if the log can be emptied within `LOG_SECONDS`.

    SQLite waits for readers and writers, but not for a checkpoint of another process. A log without
    a file belongs to nothing.
    """
    if not path.exists():
        remove_beside(path)
    log, pause, deadline = Path(f"{path}-wal"), threading.Event(), Deadline.after(LOG_SECONDS)
    while True:
        old.execute(f"PRAGMA busy_timeout = {LOG_SECONDS * 1_000}")
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        old.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1_000}")
        old.execute("BEGIN IMMEDIATE")
        if not log.exists() or not log.stat().st_size:
            return True
        old.execute("ROLLBACK")
        if deadline.expired():
            return False
        pause.wait(TURN_SECONDS)
