"""The files of a store: which file a path names, and what a replaced file leaves beside it.

SQLite keeps a log (`-wal`) and an index of the log (`-shm`) beside a store, found by its path. A
file that is copied over the store, or renamed into its place, inherits both.
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
#: Between two looks whether it is a writer's turn.
TURN_SECONDS: Final = 0.01

#: Closing a file ends all locks of this process on it, SQLite's too: these are never closed.
_kept_open: dict[tuple[int, int], int] = {}


def file_at(path: Path) -> tuple[int, int]:
    """The file that a path names; raises `OSError` if there is none."""
    seen = os.stat(path)
    return seen.st_dev, seen.st_ino


def forget_stale_index(db: sqlite3.Connection, path: Path) -> None:
    """Makes SQLite read the log anew if its index is that of a file which was at `path` before.

    The index holds the size of the store. With an empty log that must be the size of the file.
    Every connection recovers from an empty header, as it does after a crash.
    """
    if _fits(db, path):
        return
    with suppress(OSError):
        os.pwrite(_keep_open(Path(f"{path}-shm")), bytes(INDEX_HEADER_BYTES), 0)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keeps other processes from replacing streams of the store, or all of it, meanwhile.

    Imports and grants go on. The kernel ends it with the process.
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
    """Lets writers of the store begin one after the other, if the wait is no longer than `seconds`.

    Yields what is left of them for the lock itself.

    Waiting for the lock of SQLite means looking for it ten times a second. A writer of many short
    transactions would take it between two looks. Who waits keeps others from beginning.
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
