"""Reads a configuration file up to a size limit; replaces it atomically and keeps a backup."""

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evidence.limits import BUDGETS
from service import durable


def content_of(path: Path, most: int = BUDGETS.client_file_bytes) -> bytes | None:
    """The bytes of a regular file; None if it does not exist.

    Raises `OSError` for other kinds of files, which may never end, and above `most` bytes.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "It is not a regular file", str(path))
    with os.fdopen(opened, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"It is larger than {most} bytes", str(path))
    return content


BACKUP = ".rung-backup-"
OWN, FOREIGN = 0o600, 0o077


class Changed(Exception):
    """The file changed after it was read."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was read: its resolved path, and its bytes; None if it does not exist."""

    path: Path
    content: bytes | None

    @classmethod
    def of(cls, path: Path) -> "FileState":
        """Reads the file at `path`, following links."""
        real = Path(os.path.realpath(path))
        return cls(real, content_of(real))

    def earlier(self) -> list[bytes]:
        """The contents of the backups, newest first; unreadable ones are skipped."""
        contents = []
        for path in sorted(self.path.parent.glob(f"{self.path.name}{BACKUP}*"), reverse=True):
            with suppress(OSError):
                contents.append(content_of(path))
        return [content for content in contents if content is not None]

    def replace(self, content: bytes | None, now: datetime, *, private: bool) -> Path | None:
        """Replaces the file by `content`, or deletes it for None; returns the path of the backup.

        Mode and owner stay, but a `private` file is for its owner only. Concurrent readers see
        the old file or the new one. Raises `Changed` if the file changed after it was read.
        """
        if content_of(self.path) != self.content:
            raise Changed
        self.path.parent.mkdir(parents=True, exist_ok=True)
        status = self.path.stat() if self.content is not None else None
        backup = self._back_up(status, now) if status else None
        fresh = self._write_fresh(content, status, private) if content is not None else None
        try:
            if content_of(self.path) != self.content:
                raise Changed
            if fresh:
                os.replace(fresh, self.path)
            else:
                self.path.unlink()
        except BaseException:
            for path in (fresh, backup):
                if path:
                    path.unlink(missing_ok=True)
            raise
        with suppress(OSError):  # some systems do not support it
            durable.sync_entry(self.path)
        return backup

    def _back_up(self, status: os.stat_result, now: datetime) -> Path:
        """A copy beside the file, with its permissions; never over an earlier one."""
        stem, number = f"{self.path.name}{BACKUP}{now:%Y%m%dT%H%M%SZ}", 1
        while True:
            path = self.path.with_name(stem if number == 1 else f"{stem}-{number}")
            try:
                opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWN)
                break
            except FileExistsError:
                number += 1
        _fill(path, opened, self.content or b"", status, stat.S_IMODE(status.st_mode))
        return path

    def _write_fresh(self, content: bytes, status: os.stat_result | None, private: bool) -> Path:
        """Writes the new file under a temporary name in the same folder."""
        opened, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        mode = stat.S_IMODE(status.st_mode) if status else OWN
        try:
            _fill(Path(name), opened, content, status, mode & ~FOREIGN if private else mode)
        except BaseException:
            Path(name).unlink()
            raise
        return Path(name)


@contextmanager
def alone() -> Iterator[None]:
    """Locks out other processes of this user that edit such files.

    Clients ignore this lock, and it is skipped if the home folder cannot be locked.
    """
    with ExitStack() as stack:
        with suppress(OSError, RuntimeError):
            opened = os.open(Path.home(), os.O_RDONLY)
            stack.callback(os.close, opened)
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _fill(path: Path, fd: int, content: bytes, status: os.stat_result | None, mode: int) -> None:
    """Writes the content, and sets the mode and the former owner."""
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(fd)
    current = path.stat()
    if status is not None and (status.st_uid, status.st_gid) != (current.st_uid, current.st_gid):
        os.chown(path, status.st_uid, status.st_gid)
    path.chmod(mode)
