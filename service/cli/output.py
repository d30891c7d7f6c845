"""Writes command output: escaped terminal text, JSON, JSON lines and CSV.

Data goes to stdout, messages to stderr. On a terminal, control and other misleading characters
are written out; elsewhere, data stays as it is.
"""

import csv
import io
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
import orjson

from evidence.text import escape, json_line

#: Beginnings of cells that spreadsheets take for a formula, except negative numbers.
_FORMULA = re.compile(r"(?!-[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?\Z)[=+\-@\t\r]")


def on_terminal(*, err: bool = False) -> bool:
    """True if the stream is a terminal."""
    return (sys.stderr if err else sys.stdout).isatty()


def text(given: str, *, newline: bool = True, err: bool = False) -> None:
    """Writes arbitrary text, escaped for a terminal."""
    shown = escape(given)[0] if on_terminal(err=err) else given
    click.echo(shown.encode("utf-8", "surrogateescape"), nl=newline, err=err)


def say(given: str) -> None:
    """Prints our own lines to stderr."""
    text(given, err=True)


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as `1,204 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def json(value: Any, *, err: bool = False) -> None:
    """A body: on several lines for a person, on one for a program."""
    if on_terminal(err=err):
        click.echo(json_line(value, indented=True), err=err)
    else:
        click.echo(orjson.dumps(value), err=err)


def json_lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """One object a line."""
    for row in rows:
        click.echo(json_line(row) if on_terminal() else orjson.dumps(row))


def table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, raw: bool = False) -> None:
    """Writes CSV (RFC 4180) with a header; values other than text and numbers are JSON.

    Cells are made `safe` unless `raw`.
    """
    made = io.StringIO(newline="")
    writer = csv.writer(made)
    cells = [list(columns), *([_cell(row.get(name)) for name in columns] for row in rows)]
    for line in cells:
        writer.writerow([safe(one) if isinstance(one, str) and not raw else one for one in line])
    text(made.getvalue().replace("\r\n", "\n") if on_terminal() else made.getvalue(), newline=False)


def safe(cell: str, *, begins: bool = True) -> str:
    """Text that no spreadsheet executes: formulas quoted by an apostrophe, controls written out.

    Line breaks stay. `begins` is false for a later piece of a cell.
    """
    shown = "\r".join(escape(part)[0] for part in cell.split("\r"))
    return f"'{shown}" if begins and _FORMULA.match(cell) else shown


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return value
    return orjson.dumps(value).decode()
