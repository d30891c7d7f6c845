"""Reads Excel workbooks that are too large for memory.

openpyxl itself would keep all texts of a workbook and an element for each row of a sheet.
"""

import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import IO, Any
from xml.etree.ElementTree import ParseError, iterparse
from zipfile import BadZipFile

from openpyxl.cell.text import Text
from openpyxl.reader.excel import ExcelReader
from openpyxl.utils.escape import unescape
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.worksheet._reader import ROW_TAG, WorkSheetParser
from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS

from evidence.errors import InvalidRequest

#: Texts kept in memory, because cells repeat those of other cells.
CACHED_TEXTS = 1_024
_BROKEN = (
    *(BadZipFile, IndexError, InvalidFileException, KeyError),
    *(OSError, ParseError, ValueError, zlib.error),
)
_TEXT, _ROWS = f"{{{SHEET_MAIN_NS}}}si", f"{{{SHEET_MAIN_NS}}}sheetData"


class SharedStrings:
    """Texts by their number, from the XML of a workbook; `texts_file` is a file for them."""

    def __init__(self, xml: IO[bytes], texts_file: IO[bytes]) -> None:
        self._file = texts_file
        self._ends = array("Q", [0])
        opened = iterparse(xml, events=("start", "end"))
        _, root = next(opened)
        for event, node in opened:
            if event == "end" and node.tag == _TEXT:
                text = unescape(Text.from_tree(node).content).encode("utf-8", "surrogatepass")
                self._file.write(text)
                self._ends.append(self._ends[-1] + len(text))
                root.clear()
        self._cached = lru_cache(CACHED_TEXTS)(self._read)

    def __getitem__(self, number: int) -> str:
        return self._cached(number)

    def _read(self, number: int) -> str:
        start, end = self._ends[number], self._ends[number + 1]
        self._file.seek(start)
        return self._file.read(end - start).decode("utf-8", "surrogatepass")


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turns the errors of a broken workbook into `InvalidRequest`."""
    try:
        yield
    except _BROKEN as error:
        raise InvalidRequest(f"{name} is not a readable workbook: {error}.") from error


class Reader(ExcelReader):  # type: ignore[misc]
    """Opens a workbook for reading, row by row."""

    def __init__(self, file: IO[bytes], texts_file: IO[bytes]) -> None:
        super().__init__(file, read_only=True, data_only=True)
        self._texts_file = texts_file

    def read_strings(self) -> None:
        part = self.package.find(SHARED_STRINGS)
        if part is not None:
            with self.archive.open(part.PartName[1:]) as xml:
                self.shared_strings = SharedStrings(xml, self._texts_file)


def rows(sheet: Any, name: str) -> Iterator[tuple[int, list[Any]]]:
    """The rows of a sheet that its file contains: the number of each, from 1, and its values.

    Raises `InvalidRequest`, with the `name` of the file, if the sheet is broken.
    """
    book = sheet.parent
    with readable(name), sheet._get_source() as xml:
        parser = WorkSheetParser(
            xml,
            sheet._shared_strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        opened = iterparse(xml, events=("start", "end"))
        _, parent = next(opened)
        for event, node in opened:
            if node.tag == _ROWS:
                parent = node
            elif node.tag == ROW_TAG and event == "end":
                number, cells = parser.parse_row(node)
                values = [None] * max((cell["column"] for cell in cells), default=0)
                for cell in cells:
                    values[cell["column"] - 1] = cell["value"]
                yield number, values
                parent.clear()
                parser.row_dimensions.clear()
