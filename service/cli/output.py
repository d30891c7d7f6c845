"""Writes command output: escaped terminal text, JSON, JSON lines and CSV, and progress.

Data goes to stdout, messages to stderr. On a terminal, control and other misleading characters are
escaped; elsewhere, data stays unchanged.
"""

import csv
import io
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TYPE_CHECKING

import click
import orjson

from evidence.text import escape, json_line

#: Beginnings of cells that spreadsheets treat as formulas, except negative numbers.
_FORMULA = re.compile(r"(?!-[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?\Z)[=+\-@\t\r]")


def on_terminal(*, err: bool = False) -> bool:
    """True if the stream is a terminal."""
    return (sys.stderr if err else sys.stdout).isatty()


def text(content: str, *, newline: bool = True, err: bool = False) -> None:
    """Writes arbitrary text, escaped for a terminal."""
    printed = escape(content)[0] if on_terminal(err=err) else content
    click.echo(printed.encode("utf-8", "surrogateescape"), nl=newline, err=err)


def say(line: str) -> None:
    """Prints our own lines to stderr."""
    text(line, err=True)


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as `1,204 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def json(value: Any, *, err: bool = False) -> None:
    """Writes a body: indented for a person, on one line for a program."""
    if on_terminal(err=err):
        click.echo(json_line(value, indented=True), err=err)
    else:
        click.echo(orjson.dumps(value), err=err)


def json_lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes one object per line."""
    for row in rows:
        click.echo(json_line(row) if on_terminal() else orjson.dumps(row))


def table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, raw: bool = False) -> None:
    """Writes CSV (RFC 4180) with a header; values other than text and numbers are JSON.

    Cells are made `safe` unless `raw`.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    cells = [list(columns), *([_cell(row.get(name)) for name in columns] for row in rows)]
    for line in cells:
        writer.writerow([cell if raw or not isinstance(cell, str) else safe(cell) for cell in line])
    content = buffer.getvalue()
    text(content.replace("\r\n", "\n") if on_terminal() else content, newline=False)


def safe(cell: str, *, begins: bool = True) -> str:
    """Text that no spreadsheet executes: an apostrophe before formulas, control characters escaped.

    Line breaks stay. `begins` is false for a later piece of a cell.
    """
    escaped = "\r".join(escape(part)[0] for part in cell.split("\r"))
    return f"'{escaped}" if begins and _FORMULA.match(cell) else escaped


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return value
    return orjson.dumps(value).decode()


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
        self._began = self._printed_at = clock()
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

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Shows no progress, which would overwrite a question."""
        if self._bar is not None:
            self._bar.stop()
        yield
        if self._bar is not None:
            self._bar.start()

    def seconds(self) -> float:
        """The seconds since the beginning."""
        return self._clock() - self._began

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
    """Counts the rows of several files, and shows how much of their bytes was read.

    `sizes` are the sizes of the files, if known.
    """

    def __init__(self, meter: Meter, sizes: Sequence[int | None]) -> None:
        self._meter, self._sizes = meter, sizes
        self._total = None if None in sizes else sum(filter(None, sizes))
        self._files = self._rows = 0

    def next_file(self) -> None:
        """Begins the next file."""
        self._files += 1

    def row(self, position: int) -> None:
        """Counts one row; `position` is how much of its file was read."""
        self._rows += 1
        if self._rows % ROWS_BETWEEN_LOOKS == 0:
            *before, size = self._sizes[: self._files + 1]
            done = sum(filter(None, before)) + min(position, size or 0)
            self._meter.to(done, self._total, f"{self._rows:,}")
