"""Destinations of an export: a resumable file, or a pipe.

A file is `FILE.part` until it is complete. `FILE.part.json` records which export it belongs to, how
many of its bytes are valid, their SHA-256, and the state to resume from. Later bytes are dropped.
"""

import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import click
import orjson

from evidence.errors import Unavailable
from service.cli.output import say

READ_BYTES = 1 << 20
#: Records are private: no other user of the machine may read them.
MODE = 0o600

#: Other names of standard output. Opening them by name would truncate the target of `>>`.
STDOUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")

State = dict[str, Any]


class Sink:
    """Receives the bytes of an export: a pipe, or a `Part`, which another run can resume.

    `state` is the last saved state, empty at the start; `size` counts the bytes written so far,
    earlier runs included.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.state: State = {}
        self.size = self._saved_size = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def digest(self) -> str:
        """The SHA-256 of all bytes, in hexadecimal."""
        return self._hash.hexdigest()

    def keep(self, state: State) -> None:
        """Saves the state from which another run can resume."""
        self.state, self._saved_size = state, self.size

    def rewind(self) -> None:
        """Drops what was written since `keep`; raises `Unavailable` if that is not possible."""
        if self.size > self._saved_size:
            raise Unavailable(
                "The source changed during the export, and output to a pipe cannot be undone. "
                "Run the command again, or name a file with -o.",
                code="changing",
            )

    def restart(self) -> None:
        """Drops everything; raises `Unavailable` if that is not possible."""
        self._saved_size = 0
        self.rewind()
        self.state = {}


@contextmanager
def destination(output: str, what: State, *, force: bool, restart: bool) -> Iterator[Sink]:
    """The sink of `-o OUTPUT`; the file exists once the block ends without an error.

    `what` identifies the export: only the same export resumes an earlier run. Raises
    `click.ClickException` if OUTPUT cannot be written without a loss.
    """
    path = Path(output)
    if output == "-":
        yield Sink(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    if _is_line(path):
        with open(path, "wb") as file:
            yield Sink(file)
        return
    _check(path, force)
    part = Part(path, what, restart=restart)
    try:
        yield part
        _check(path, force)
        part.finish()
    finally:
        part.close()


class Part(Sink):
    """A file that is being written, locked against a second run."""

    def __init__(self, target: Path, what: State, *, restart: bool) -> None:
        self._target = target
        self._what = orjson.loads(orjson.dumps(what))  # as it will be parsed
        self.path = target.with_name(f"{target.name}.part")
        self._notes = target.with_name(f"{target.name}.part.json")
        super().__init__(_locked(self.path))
        try:
            self._recall(restart)
            self._saved_hash = self._hash.copy()
        except BaseException:
            self._file.close()
            raise

    def keep(self, state: State) -> None:
        self._file.flush()
        self.state = state
        notes = {"of": self._what, "bytes": self.size, "sha256": self.digest(), "state": state}
        fresh = self._notes.with_name(f"{self._notes.name}.new")
        with open(fresh, "wb", opener=_private) as file:
            file.write(orjson.dumps(notes))
        fresh.replace(self._notes)
        self._saved_size, self._saved_hash = self.size, self._hash.copy()

    def rewind(self) -> None:
        self.size, self._hash = self._saved_size, self._saved_hash.copy()
        self._file.seek(self.size)
        self._file.truncate()

    def restart(self) -> None:
        self._notes.unlink(missing_ok=True)
        self._saved_size, self._saved_hash, self.state = 0, hashlib.sha256(), {}
        self.rewind()

    def finish(self) -> None:
        """Renames the complete part to the target."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self.path.replace(self._target)
        self._notes.unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the part, and deletes one that no run could resume."""
        if not self.state:
            with suppress(OSError):
                self.path.unlink()
        self._file.close()

    def _recall(self, restart: bool) -> None:
        """Resumes at the position of the notes if they match this export and the file."""
        notes = None if restart else _notes(self._notes)
        if notes is not None and notes["of"] != self._what:
            raise click.ClickException(
                f"{self.path} belongs to another export. Finish that export, choose another file "
                "with -o, or discard the unfinished file with --restart."
            )
        if notes is not None and self._holds(notes["bytes"], notes["sha256"]):
            self.state, self.size = notes["state"], notes["bytes"]
            self._saved_size = self.size
            self._file.truncate()
        elif self.path.stat().st_size or notes is not None:
            if not restart:
                say(f"{self.path} has changed since the interruption. Starting over.")
            self.restart()

    def _holds(self, size: int, sha256: str) -> bool:
        """True if the file begins with these bytes; if so, seeks to the position after them."""
        remaining = size
        while remaining and (chunk := self._file.read(min(remaining, READ_BYTES))):
            self._hash.update(chunk)
            remaining -= len(chunk)
        if remaining == 0 and self._hash.hexdigest() == sha256:
            return True
        self._hash = hashlib.sha256()
        return False


def _is_line(path: Path) -> bool:
    """True for a device, a named pipe or an open descriptor, which cannot be replaced."""
    if not path.exists() or path.is_dir():
        return False
    return not path.is_file() or str(path.parent) in ("/dev", "/dev/fd", "/proc/self/fd")


def _check(path: Path, force: bool) -> None:
    if path.is_dir():
        raise click.ClickException(f"{path} is a directory. Name a file with -o.")
    if path.exists() and not force:
        advice = "Choose another file with -o, or replace it with --force."
        raise click.ClickException(f"{path} already exists. {advice}")


def _locked(path: Path) -> BinaryIO:
    """The part, created if missing and locked for this run."""
    file = open(path, "r+b", opener=_private)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        advice = "Wait until it has finished, or choose another file."
        raise click.ClickException(f"Another process is writing to {path}. {advice}") from None
    return file


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, MODE)


def _notes(path: Path) -> dict[str, Any] | None:
    """The notes of a part file; None if they are missing or unreadable."""
    try:
        notes = orjson.loads(path.read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None
    types: dict[str, type] = {"of": dict, "bytes": int, "sha256": str, "state": dict}
    fit = isinstance(notes, dict) and all(isinstance(notes.get(key), types[key]) for key in types)
    return notes if fit else None
