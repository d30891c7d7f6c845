"""Rows of CSV and TSV tables with a header; columns of numbers and booleans get their type."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.importing.source import Item, Source
from service.records.intake import Row

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False}


def read_csv(source: Source) -> Iterator[Item]:
    """The rows of a table with commas between cells."""
    return _read(source, ",")


def read_tsv(source: Source) -> Iterator[Item]:
    """The rows of a table with tabs between cells."""
    return _read(source, "\t")


def _read(source: Source, delimiter: str) -> Iterator[Item]:
    csv.field_size_limit(BUDGETS.import_row_bytes)
    text = io.TextIOWrapper(source.file, "utf-8-sig", errors="surrogateescape", newline="")
    lines = csv.reader(
        (source.repair.text(line) for line in text),
        delimiter=delimiter,
    )
    try:
        yield from _read_table(lines)
    except csv.Error as error:
        yield lines.line_num, f"Reading stopped here: {error}. Check the quotes of this line."
    finally:
        text.detach()


def _read_table(lines: Any) -> Iterator[Item]:
    header = next(lines, None)
    if header is None:
        return
    for name in header:
        if header.count(name) > 1:
            raise InvalidRequest(f"The header names the column {name!r} twice; rename one.")
    numbered = ((lines.line_num, cells) for cells in lines if cells)
    sample = list(islice(numbered, BUDGETS.import_sample_rows))
    readers = [_column_reader([c[i] for _, c in sample if i < len(c)]) for i in range(len(header))]
    for number, cells in chain(sample, numbered):
        if len(cells) != len(header):
            yield number, f"This row has {len(cells)} cells, the header has {len(header)}."
            continue
        yield number, Row({n: read(cell) for n, read, cell in zip(header, readers, cells)})


def _column_reader(sample: list[str]) -> Callable[[str], Any]:
    """How the cells of a column are read: as a number or boolean only if the whole sample is."""
    filled = [cell for cell in sample if cell]
    if filled and all(_INTEGER.fullmatch(cell) for cell in filled):
        return lambda cell: int(cell) if _INTEGER.fullmatch(cell) else cell or None
    if filled and all(_NUMBER.fullmatch(cell) for cell in filled):
        return lambda cell: float(cell) if _NUMBER.fullmatch(cell) else cell or None
    if filled and all(cell.lower() in _BOOLEANS for cell in filled):
        return lambda cell: _BOOLEANS.get(cell.lower(), cell or None)
    return str
