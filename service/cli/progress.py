"""Progress on stderr: a bar on a terminal, otherwise a line now and then."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar, TaskID

ROWS_BETWEEN_LOOKS = 64
SECONDS_BETWEEN_LINES = 5.0  # logs are read later, and imports and exports take long


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
            from rich.console import Console  # imported only on a terminal
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[count]}", markup=False),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def to(self, done: int, total: int | None, count: str = "") -> None:
        """Updates the progress. `count` replaces the text made from `done` and `total`."""
        count = count or (f"{done:,} of {total:,}" if total else f"{done:,}")
        count = f"{count} {self._unit}"
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(self._name, total=total, count=count)
            self._bar.update(self._task, completed=done, total=total, count=count)
        elif self._clock() - self._printed_at >= SECONDS_BETWEEN_LINES:
            self._printed_at = self._clock()
            share = f" ({done / total:.0%})" if total else ""
            sys.stderr.write(f"{self._name}: {count}{share}\n")
            sys.stderr.flush()


class FileRows:
    """Counts the rows of several files, and shows how much of `total` bytes was read."""

    def __init__(self, meter: Meter, total: int | None) -> None:
        self._meter, self._total = meter, total
        self._file: BinaryIO | None = None
        self._size = self._done = self._rows = 0

    def start(self, file: BinaryIO, size: int | None) -> None:
        """Begins a file; `size` is its bytes, if they are known."""
        self._done += self._size
        self._file, self._size = file, size or 0

    def row(self) -> None:
        """Counts one row."""
        self._rows += 1
        if self._rows % ROWS_BETWEEN_LOOKS == 0:
            self._meter.to(self._done + self._read(), self._total, f"{self._rows:,}")

    def _read(self) -> int:
        """The bytes that were read of the file; none of a pipe, which has no position."""
        if self._file is None or self._file.closed or not self._size:
            return 0
        return min(self._file.tell(), self._size)
