"""Rows from CSV files, TSV files and the sheets of Excel workbooks.

Delimiter, quotes, header and names of columns are detected; every cell is text.
"""

import csv
import re
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, time
from itertools import chain, islice
from typing import Any, Final

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS, CONTRACT
from service.extras import install_command
from service.importing.column_types import decisive, kind_of
from service.importing.source import Format, Item, Source, Undecodable, as_text, seekable
from service.importing.source import text_lines
from service.importing.tree import check, most
from service.records.intake import Row

#: The number of lines examined for delimiter and header.
HEAD_LINES: Final = 200
#: The most values of a column that are compared for its type, besides those of the first rows.
MOST_DECISIVE: Final = 16
#: Rows of tables with more columns have no empty cells.
SPARSE_COLUMNS: Final = 1_024
_YEARS: Final = frozenset(map(str, range(1900, 2101)))


Cells = tuple[int, list[str]]


def rows_of(
    source: Source, read: Callable[[], Iterator[Cells]], stream: str = ""
) -> Iterator[Item]:
    """The rows of a table, which is read twice: first for values that decide types of columns."""
    numbered = read()
    head = list(islice(numbered, HEAD_LINES))
    if not head:
        return
    first, width = _first(head)
    if first:
        source.notes.append(f"Lines left out before the table: {first}.")
    sample = [fit for _, cells in head[first:] if len(fit := _fit(cells, width)) == width]
    header = source.reading.header
    has_header = _is_header(sample) if header is None else header
    names, unnamed = _names(source, sample[0] if has_header else [""] * width)
    if not has_header:
        source.notes.append("The table has no header, so its columns are named column_1 and so on.")
    if width > SPARSE_COLUMNS:
        unnamed = set(names)
    if len(head) == HEAD_LINES:
        rows = chain(head[first + has_header :], numbered)
        source.decisive[stream] = _decisive(names, rows)
        numbered = read()
        head = list(islice(numbered, HEAD_LINES))
    number = None
    for number, cells in chain(head[first + has_header :], numbered):
        cells = _fit(cells, width)
        if len(cells) != width:
            yield number, f"This row does not fit the table. Cells: {len(cells)}. Columns: {width}."
            continue
        try:
            row = source.repair.value(
                {name: cell for name, cell in zip(names, cells) if cell or name not in unnamed}
            )
        except Undecodable as error:
            yield number, f"{error}."
            continue
        yield number, Row(row)
    if number is None:
        source.notes.append(f"There are no rows after the header: {', '.join(names)}.")


def _decisive(names: list[str], rows: Iterator[Cells]) -> dict[str, list[str]]:
    """By column, a value for everything that values of it show about its type."""
    columns = [dict[str, str]() for _ in names]
    with suppress(csv.Error, InvalidRequest):  # which end the next reading as well
        for _, cells in rows:
            for signs, cell in zip(columns, cells):
                if (what := decisive(cell)) and what not in signs and len(signs) < MOST_DECISIVE:
                    signs[what] = cell
    return {name: [*signs.values()] for name, signs in zip(names, columns) if signs}


def _fit(cells: list[str], width: int) -> list[str]:
    """A row without empty cells beyond the width of the table."""
    return cells[:width] if len(cells) > width >= len(_trimmed(cells)) else cells


def _first(head: Sequence[tuple[int, list[str]]]) -> tuple[int, int]:
    """The number of lines before the table, such as those in exports of banks, and its width.

    The header is the widest row of names that the rows after it fit, or else the first row of the
    commonest width, if those before it are shorter.
    """
    rows = [cells for _, cells in head]
    widths = [len(_trimmed(cells)) for cells in rows]
    for first in sorted(range(len(rows)), key=lambda number: -widths[number]):
        width, following = widths[first], rows[first + 1 :]
        fit = sum(len(cells) >= width >= len(_trimmed(cells)) for cells in following)
        if width > 1 and fit * 2 > len(following) and _are_names(rows[first][:width]):
            if max(widths[:first], default=0) < width:
                return first, width
    common = Counter(map(len, rows))
    width, count = max(common.items(), key=lambda item: (item[1] > 1, item[0] > 1, item[1]))
    first = next(number for number, cells in enumerate(rows) if len(cells) == width)
    if count == 1 or any(len(cells) >= width for cells in rows[:first]):
        first = 0
    return first, len(rows[first])


def _trimmed(cells: list[str]) -> list[str]:
    """The cells of a row without empty ones at its end."""
    size = len(cells)
    while size and not cells[size - 1].strip():
        size -= 1
    return cells[:size]


def _are_names(cells: list[str]) -> bool:
    """Whether most cells of a row have a text, and none is a number or a time other than a year."""
    filled = [cell for cell in cells if cell.strip() and cell not in _YEARS]
    return len(filled) * 2 > len(cells) and all(_are_texts([cell]) for cell in filled)


def _are_texts(cells: list[str]) -> bool:
    """Whether the values of a column are neither numbers nor times."""
    return kind_of("", cells, untyped=True).to_json() == {"type": "string"}


def _is_header(sample: Sequence[list[str]]) -> bool:
    """True if the first row names the columns: none of its values has the type of its column."""
    first, rest = sample[0], sample[1:]
    for number, cell in enumerate(first):
        if not cell or cell in _YEARS or _are_texts([cell]):
            continue
        if not rest or not _are_texts([cells[number] for cells in rest]):
            return False
    return True


def _names(source: Source, header: Sequence[str]) -> tuple[list[str], set[str]]:
    """A name for every column: the header's, made unique and at most 64 bytes long.

    Columns without one, if others have one, are left out of rows in which they are empty.
    """
    names, unnamed = dict[str, None](), set[str]()
    for number, cell in enumerate(header, start=1):
        try:
            cell = source.repair.text(cell).strip()
        except Undecodable as error:
            where = f"{source.name}, column {number} of the header"
            raise InvalidRequest(f"{where}: {error}.") from error
        name = cell.encode()[: CONTRACT.name_bytes].decode(errors="ignore") or f"column_{number}"
        while name in names:
            stem = name.encode()[: CONTRACT.name_bytes - 4].decode(errors="ignore")
            name = f"{stem}_{number}"
        if not cell:
            unnamed.add(name)
        elif name != cell:
            source.notes.append(f"The column {cell[:60]!r} is stored as the field {name!r}.")
        names[name] = None
    return list(names), unnamed if len(unnamed) < len(names) else set()


DELIMITERS: Final = (",", ";", "\t", "|")
#: The number of characters examined for delimiter and header.
HEAD_CHARS = 8_192
#: The first line of some files that Excel writes.
_HINT: Final = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)


def read_csv(source: Source) -> Iterator[Item]:
    """The rows of a table, with the names of its columns from its header."""
    csv.field_size_limit(BUDGETS.import_row_bytes)
    with seekable(source), as_text(source, newline="") as text:
        lines = text_lines(text)
        head = list(islice(lines, HEAD_LINES))
        hint = _HINT.fullmatch(head[0]) if head else None
        chosen = source.reading.delimiter or ("\t" if source.format == "tsv" else hint and hint[1])
        dialect = _dialect("".join(head[bool(hint) :])[:HEAD_CHARS], chosen)
        source.comma = False if dialect.delimiter == "," else None
        reader = csv.reader(())

        def read() -> Iterator[Cells]:
            nonlocal reader
            text.seek(0)
            lines = text_lines(text)
            reader = csv.reader(islice(lines, bool(hint), None), dialect)
            yield from ((reader.line_num, cells) for cells in reader if cells)

        try:
            yield from rows_of(source, read)
        except csv.Error as error:
            advice = "Check the quotation marks in this row."
            yield reader.line_num, f"Reading stopped here: {error}. {advice}"


def _dialect(sample: str, delimiter: str | None) -> type[csv.Dialect]:
    """The delimiter and quotes, by clevercsv, which looks for clean columns."""
    from clevercsv.detect import Detector  # imported for tables only

    sample = sample.encode("utf-8", "replace").decode().replace("\0", "?")
    dialect = Detector().detect(sample, delimiters=[delimiter] if delimiter else list(DELIMITERS))

    class Dialect(csv.excel):
        quotechar = (dialect and dialect.quotechar) or '"'
        escapechar = (dialect and dialect.escapechar) or None

    Dialect.delimiter = delimiter or (dialect and dialect.delimiter) or ","
    return Dialect


TSV = Format("tsv", (".tsv", ".tab"), re.compile(rb".+\t"), read_csv, untyped=True)
CSV = Format("csv", (".csv",), re.compile(rb".+[,;|]"), read_csv, untyped=True)


_WORKBOOK = re.compile(rb"PK\x03\x04.*[^a-z]xl/", re.DOTALL)
_UNNAMED = re.compile(
    r"(Sheet|Tabelle|Feuille?|Hoja|Blad|Foglio|Planilha|シート) ?\d+", re.IGNORECASE
)


def read_workbook(source: Source) -> Iterator[Item]:
    """The rows of all sheets."""
    try:
        from service.importing.readers import workbook_parts
    except ImportError:
        raise InvalidRequest(f"To read Excel workbooks: {install_command('xlsx')}") from None
    with tempfile.TemporaryFile() as texts_file:
        with workbook_parts.readable(source.name):
            size = source.file.seek(0, 2)
            with zipfile.ZipFile(source.file) as archive:
                check(archive, source.name, most(size))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles and validations that it cannot read
                reader = workbook_parts.Reader(source.file, texts_file)
                reader.read()
        book = reader.wb
        for number, sheet in enumerate(book.worksheets, start=1):
            name = source.stream
            if len(book.worksheets) > 1:
                name = f"{name} {number}" if _UNNAMED.fullmatch(sheet.title) else sheet.title
                name = name.encode()[: CONTRACT.name_bytes].decode(errors="ignore")
            reported = len(source.notes)

            def read(sheet: Any = sheet) -> Iterator[Cells]:
                return _cells(workbook_parts.rows(sheet, source.name), source.notes)

            for line, item in rows_of(source, read, name if len(book.worksheets) > 1 else ""):
                content = item._replace(stream=name) if isinstance(item, Row) else f"{name}: {item}"
                yield line, content
            source.notes[reported:] = [f"{sheet.title}: {note}" for note in source.notes[reported:]]
        book.close()


def _cells(rows: Iterator[tuple[int, list[Any]]], notes: list[str]) -> Iterator[Cells]:
    """The rows of a sheet, starting with the widest of the first ones, all of the same width."""
    lines = ((number, cells) for number, values in rows if (cells := _texts(values)))
    head = list(islice(lines, HEAD_LINES))
    width = max((len(cells) for _, cells in head), default=0)
    first = next((index for index, (_, cells) in enumerate(head) if len(cells) == width), 0)
    note = f"Lines left out before the table: {first}."
    if first and note not in notes:
        notes.append(note)
    for number, cells in chain(head[first:], lines):
        yield number, cells + [""] * (width - len(cells))


def _texts(values: Sequence[Any]) -> list[str]:
    """The cells of a row as text, without empty ones at its end."""
    texts = ["" if value is None else _text(value) for value in values]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return (value.date() if value.time() == time() else value).isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


XLSX = Format(
    "xlsx", (".xlsx", ".xlsm"), _WORKBOOK, read_workbook, untyped=True, any_extension=True
)
