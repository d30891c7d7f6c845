"""The files of a store: the file at a path, and the files that a replaced one leaves next to it.

SQLite keeps a log (`-wal`) and an index of the log (`-shm`) next to a store and finds them by path.
A file that is copied over the store, or renamed into its place, inherits both.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from evidence.errors import Unavailable
from evidence.work import Deadline

#: Two copies of the header of the index of the log; see "WAL-mode File Format" of SQLite.
INDEX_HEADER_BYTES: Final = 96
#: Seconds between two checks whether it is a writer's turn.
TURN_SECONDS: Final = 0.01

#: Closing a file releases all locks of this process on it, including SQLite's, so these are never
#: closed.
_kept_open: dict[tuple[int, int], int] = {}


def file_at(path: Path) -> tuple[int, int]:
    """The file that a path names; raises `OSError` if there is none."""
    seen = os.stat(path)
    return seen.st_dev, seen.st_ino


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
            f"Another process is replacing, removing, restoring or repairing in {path}. "
            "Wait until it is done, or stop it; then run this again."
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
    if file not in _kept_open:
        _kept_open[file] = os.open(path, os.O_RDWR)
    return _kept_open[file]


def _fits(db: sqlite3.Connection, path: Path) -> bool:
    with suppress(FileNotFoundError):
        if os.stat(f"{path}-wal").st_size:
            return True
    try:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_CORRUPT
    return bool(pages * size == os.stat(path).st_size)
