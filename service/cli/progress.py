"""Progress on stderr: a bar on a terminal, otherwise a line a second."""

import sys
import time
from collections.abc import Callable
from typing import BinaryIO

BAR_CHARS = 30
SECONDS_BETWEEN_LINES = 1.0
SECONDS_BETWEEN_BARS = 0.1
ROWS_BETWEEN_LOOKS = 64


class Progress:
    """Counts rows and says now and then how far a file is read."""

    def __init__(
        self,
        name: str,
        file: BinaryIO,
        size: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._file = file
        self._size = size
        self._clock = clock
        self._tty = sys.stderr.isatty()
        self._pause = SECONDS_BETWEEN_BARS if self._tty else SECONDS_BETWEEN_LINES
        self._started = self._said = clock()
        self._rows = 0

    def row(self) -> None:
        """Counts one row."""
        self._rows += 1
        if self._rows % ROWS_BETWEEN_LOOKS == 0 and self._clock() - self._said >= self._pause:
            self._say()

    def close(self) -> None:
        """Ends the bar with its last state, where there is one."""
        if self._tty and self._said > self._started:
            self._say()
            sys.stderr.write("\n")

    def _say(self) -> None:
        self._said = self._clock()
        rate = self._rows / max(self._said - self._started, 1e-9)
        line = f"{self._name}: {self._rows:,} rows, {rate:,.0f} a second{self._share()}"
        sys.stderr.write(f"\r\x1b[K{line}" if self._tty else f"{line}\n")
        sys.stderr.flush()

    def _share(self) -> str:
        if not self._size or self._file.closed:
            return ""
        share = min(self._file.tell() / self._size, 1.0)
        filled = round(share * BAR_CHARS)
        bar = f" [{'#' * filled}{'-' * (BAR_CHARS - filled)}]" if self._tty else ","
        return f"{bar} {share:.0%}"
