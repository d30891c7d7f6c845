"""Progress on stderr: a bar on a terminal, otherwise a line now and then."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar, TaskID

BAR_CHARS = 30
SECONDS_BETWEEN_LINES = 1.0
SECONDS_BETWEEN_BARS = 0.1
ROWS_BETWEEN_LOOKS = 64
SECONDS_BETWEEN_METER_LINES = 5.0  # logs are read later, and exports take long


class Progress:
    """Counts the rows of all files of an import and prints the progress at intervals."""

    def __init__(
        self, name: str, total: int | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._total = total
        self._file: BinaryIO | None = None
        self._size = self._done = self._rows = 0
        self._clock = clock
        self._tty = sys.stderr.isatty()
        self._pause = SECONDS_BETWEEN_BARS if self._tty else SECONDS_BETWEEN_LINES
        self._started = self._printed_at = clock()

    def start(self, file: BinaryIO, size: int | None) -> None:
        """Begins a file; `size` is its bytes, if they are known."""
        self._done += self._size
        self._file, self._size = file, size or 0

    def row(self) -> None:
        """Counts one row."""
        self._rows += 1
        if self._rows % ROWS_BETWEEN_LOOKS == 0 and self._clock() - self._printed_at >= self._pause:
            self._print()

    def close(self) -> None:
        """Ends the bar, if any, with its last state."""
        if self._tty and self._printed_at > self._started:
            self._print()
            sys.stderr.write("\n")

    def _print(self) -> None:
        self._printed_at = self._clock()
        rate = self._rows / max(self._printed_at - self._started, 1e-9)
        line = f"{self._name}: {self._rows:,} rows, {rate:,.0f} a second{self._share()}"
        sys.stderr.write(f"\r\x1b[K{line}" if self._tty else f"{line}\n")
        sys.stderr.flush()

    def _share(self) -> str:
        if not self._total or self._file is None or self._file.closed:
            return ""
        share = min((self._done + min(self._file.tell(), self._size)) / self._total, 1.0)
        filled = round(share * BAR_CHARS)
        bar = f" [{'#' * filled}{'-' * (BAR_CHARS - filled)}]" if self._tty else ","
        return f"{bar} {share:.0%}"


class Meter:
    """Shows progress: `with Meter("notes", "records") as meter: meter.to(3, 9)`.

    `total` is None if unknown.
    """

    def __init__(
        self, name: str, unit: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._unit, self._clock = name, unit, clock
        self._printed_at = clock()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "Meter":
        if sys.stderr.isatty():
            self._bar = _bar()
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def to(self, done: int, total: int | None) -> None:
        """Updates the progress."""
        count = f"{done:,} of {total:,} {self._unit}" if total else f"{done:,} {self._unit}"
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(self._name, total=total, count=count)
            self._bar.update(self._task, completed=done, total=total, count=count)
        elif self._clock() - self._printed_at >= SECONDS_BETWEEN_METER_LINES:
            self._printed_at = self._clock()
            share = f" ({done / total:.0%})" if total else ""
            sys.stderr.write(f"{self._name}: {count}{share}\n")
            sys.stderr.flush()


def _bar() -> "Bar":
    """A progress bar of rich, which is imported only on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeRemainingColumn(),
    )
    return Bar(*columns, console=Console(stderr=True))
