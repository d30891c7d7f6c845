"""Sheets of Excel workbooks: each is a table, with the values that its formulas had."""

import re
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from itertools import chain, islice
from typing import Any

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from service.importing.source import Format, Item, Source
from service.importing.table_rows import HEAD_LINES, rows_of
from service.importing.tree import check
from service.records.intake import Row

BEGINS = re.compile(rb"PK\x03\x04.*[^a-z]xl/", re.DOTALL)
_UNNAMED = re.compile(
    r"(Sheet|Tabelle|Feuille?|Hoja|Blad|Foglio|Planilha|シート) ?\d+", re.IGNORECASE
)

Cells = tuple[int, list[str]]


def read(source: Source) -> Iterator[Item]:
    """The rows of all sheets."""
    try:
        from service.importing import workbook_parts
    except ImportError:
        raise InvalidRequest("To read Excel workbooks: pip install 'rung[xlsx]'.") from None
    with tempfile.TemporaryFile() as kept:
        with workbook_parts.readable(source.name):
            size = source.file.seek(0, 2)
            with zipfile.ZipFile(source.file) as archive:
                check(archive, source.name, size)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of styles and validations that it cannot read
                reader = workbook_parts.Reader(source.file, kept)
                reader.read()
        book = reader.wb
        for number, sheet in enumerate(book.worksheets, start=1):
            name = source.stream
            if len(book.worksheets) > 1:
                name = f"{name} {number}" if _UNNAMED.fullmatch(sheet.title) else sheet.title
                name = name.encode()[: CONTRACT.name_bytes].decode(errors="ignore")
            reported = len(source.notes)
            for line, item in rows_of(
                source, _cells(workbook_parts.rows(sheet, source.name), source.notes)
            ):
                yield line, (
                    item._replace(stream=name) if isinstance(item, Row) else f"{name}: {item}"
                )
            source.notes[reported:] = [f"{sheet.title}: {note}" for note in source.notes[reported:]]
        book.close()


def _cells(rows: Iterator[tuple[int, list[Any]]], notes: list[str]) -> Iterator[Cells]:
    """The rows of a sheet from the widest of its first ones on, each of the same width."""
    lines = ((number, cells) for number, values in rows if (cells := _texts(values)))
    head = list(islice(lines, HEAD_LINES))
    width = max((len(cells) for _, cells in head), default=0)
    first = next((place for place, (_, cells) in enumerate(head) if len(cells) == width), 0)
    if first:
        notes.append(f"{first} lines before the table are left out.")
    for number, cells in chain(head[first:], lines):
        yield number, cells + [""] * (width - len(cells))


def _texts(values: Sequence[Any]) -> list[str]:
    """The cells of a row as text, without empty ones at its end."""
    texts = [_text(value) for value in values]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return (value.date() if value.time() == time() else value).isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


FORMAT = Format("xlsx", (".xlsx", ".xlsm"), BEGINS, read, untyped=True, any_extension=True)
