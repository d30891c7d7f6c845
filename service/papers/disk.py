"""Reads a snapshot from disk, with a stamp that detects changes.

Snapshots have the write-ahead log switched on, so opening one the usual way leaves files beside it
or fails in a read-only folder; opening it `immutable` ignores its log.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# What SQLite leaves beside a file: a log and a journal hold content, an index of the log does not.
LOGS = ("-wal", "-journal")
BESIDE = (*LOGS, "-shm")
PRIVATE = "rung-snapshot-"

Mark = tuple[int, int, int, int]


class SnapshotRefused(Exception):
    """The file cannot be served. The message is the reason, without a path."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The identity of a file and its logs: (device, inode, size, mtime in ns) of each."""

    file: str  # the real one, behind links
    mark: Mark
    logs: tuple[tuple[str, Mark], ...]  # by ending; only those with content


def look(path: str | Path) -> Stamp:
    """The stamp of a file, with links resolved. Raises `SnapshotRefused` without a file."""
    real = os.path.realpath(path)
    try:
        status = os.stat(real)
    except OSError as error:
        raise SnapshotRefused(f"it cannot be read: {reason(error)}") from error
    if not stat.S_ISREG(status.st_mode):
        raise SnapshotRefused("it is not a regular file")
    if not os.access(real, os.R_OK):
        raise SnapshotRefused("it cannot be read: permission denied")
    logs = ((ending, _log(real + ending)) for ending in LOGS)
    return Stamp(real, mark(status), tuple((ending, seen) for ending, seen in logs if seen))


def mark(status: os.stat_result) -> Mark:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def reason(error: OSError) -> str:
    """The system's error text, without a path."""
    return (error.strerror or "input/output error").lower()


@contextmanager
def whole(stamp: Stamp) -> Iterator[Path]:
    """A file with all content: the file itself, or a private copy into which its log is folded.

    The copy is removed at the end; connections to it stay usable. Raises `SnapshotRefused`, also
    at the end, if the file changed since the stamp was taken.
    """
    if not stamp.logs:
        yield Path(stamp.file)
        _check_unchanged(stamp)
        return
    _sweep()
    with tempfile.TemporaryDirectory(prefix=f"{PRIVATE}{os.getpid()}-") as folder:
        copy = Path(folder) / "snapshot.db"
        try:
            for ending in ("", *(ending for ending, _ in stamp.logs)):
                shutil.copyfile(stamp.file + ending, f"{copy}{ending}")
        except OSError as error:
            raise SnapshotRefused(f"it cannot be copied: {reason(error)}") from error
        _check_unchanged(stamp)
        _fold(copy)
        yield copy


def _check_unchanged(stamp: Stamp) -> None:
    if look(stamp.file) != stamp:
        raise SnapshotRefused("it changed while it was read")


def _sweep() -> None:
    """Removes private copies that dead processes of this user left behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PRIVATE}*"):
        process = folder.name.removeprefix(PRIVATE).partition("-")[0]
        with suppress(OSError):
            if process.isdecimal() and folder.lstat().st_uid == os.getuid() and _dead(int(process)):
                shutil.rmtree(folder)


def _dead(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _fold(copy: Path) -> None:
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()  # rolls a journal back
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.DatabaseError as error:
        raise SnapshotRefused(f"its write-ahead log cannot be read: {error}") from error


def _log(path: str) -> Mark | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return mark(status) if status.st_size else None
