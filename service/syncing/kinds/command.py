"""Commands: the NDJSON that a command prints is its only part. Its version is a hash of the bytes.

The command runs without a shell, and without the settings of Rung in its environment.
"""

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from typing import Final

from evidence.errors import InvalidRequest, Unavailable
from evidence.work import Deadline
from service import settings
from service.syncing.connector import Connector, Fetched, Kind, Listing, SourceSettings, Stored

SECONDS: Final = 600
LOOK_SECONDS: Final = 0.5
MOST_BYTES: Final = 1 << 30
#: The one part.
OUTPUT: Final = "output"


class Command(Connector):
    """A command whose output is the whole source."""

    format = "ndjson"

    def __init__(self, source: SourceSettings) -> None:
        self._words = words_of(source.address)
        self._folder = TemporaryDirectory()
        self._file = Path(self._folder.name) / f"{source.name}.ndjson"

    def check(self) -> None:
        if shutil.which(self._words[0]) is None:
            raise Unavailable(
                f"The command {self._words[0]} was not found. Install it, or correct the name."
            )

    def list_parts(self, stored: Stored) -> Listing | None:
        run(self._words, self._file)
        with self._file.open("rb") as file:
            version = hashlib.file_digest(file, "sha256").hexdigest()
        return Listing({OUTPUT: version} if self._file.stat().st_size else {}, {})

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        yield Fetched(self._file, {str(self._file): OUTPUT})

    def close(self) -> None:
        self._folder.cleanup()


def words_of(line: str) -> list[str]:
    """The words of a command line; raises `InvalidRequest` if there are none."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InvalidRequest(f"The command cannot be parsed: {error}. Check the quotes.") from error
    if not words:
        raise InvalidRequest("The command is empty. Give a program and its arguments.")
    return [os.path.expandvars(word) for word in words]


def run(words: list[str], output: Path, seconds: int = SECONDS) -> None:
    """Writes what a command prints to a file; raises `Unavailable` without its output."""
    name = os.path.basename(words[0])
    deadline = Deadline.after(seconds)
    try:
        with output.open("wb") as file:
            process = subprocess.Popen(
                words,
                stdin=DEVNULL,
                stdout=file,
                stderr=DEVNULL,
                env=environment(),
                start_new_session=True,
            )
    except OSError as error:
        raise Unavailable(f"The command {name} cannot be started: {error.strerror}.") from error
    try:
        code = None
        while code is None:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(LOOK_SECONDS)
            if deadline.expired():
                raise Unavailable(f"The command {name} ran for {seconds} s, so it was stopped.")
            if output.stat().st_size > MOST_BYTES:
                raise Unavailable(f"The command {name} printed more than {MOST_BYTES:,} bytes.")
    finally:
        with suppress(ProcessLookupError):  # also what it has started
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if code:
        raise Unavailable(
            f"The command {name} failed with exit code {code}. Run it in a shell to see why."
        )


def environment() -> dict[str, str]:
    """The environment of a command: ours without the settings of Rung."""
    ours = settings.environment().items()
    return {n: text for n, text in ours if not n.startswith("RUNG_") and n != "DATABASE_URL"}


def _check(address: str) -> str:
    words_of(address)
    return address


KIND = Kind("command", Command, _check)
