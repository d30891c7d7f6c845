"""Rows of tables of text cells: the line of the header, the names of the columns, the records."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from service.importing.column_types import kind_of
from service.importing.source import Item, Source
from service.importing.text_repair import Undecodable
from service.records.intake import Row

#: The lines examined for delimiter and header.
HEAD_LINES: Final = 200
_YEARS: Final = frozenset(map(str, range(1900, 2101)))


def rows_of(source: Source, numbered: Iterator[tuple[int, list[str]]]) -> Iterator[Item]:
    head = list(islice(numbered, HEAD_LINES))
    if not head:
        return
    first = _first(head)
    if first:
        source.notes.append(f"{first} lines before the table are left out.")
    width = len(head[first][1])
    sample = [cells for _, cells in head[first:] if len(cells) == width]
    has_header = source.reading.header
    if has_header is None:
        has_header = _is_header(sample)
    names, unnamed = _names(source, sample[0] if has_header else [""] * width)
    if not has_header:
        source.notes.append("The table has no header: its columns are column_1 and so on.")
    number = None
    for number, cells in chain(head[first + has_header :], numbered):
        if len(cells) != width:
            yield number, f"This row has {len(cells)} cells, the table has {width} columns."
            continue
        try:
            row = {name: source.repair.text(cell) for name, cell in zip(names, cells)}
        except Undecodable as error:
            yield number, f"{error}."
            continue
        yield number, Row({n: cell for n, cell in row.items() if cell or n not in unnamed})
    if number is None:
        source.notes.append(f"There are no rows after the header: {', '.join(names)}.")


def _first(head: Sequence[tuple[int, list[str]]]) -> int:
    """The number of lines before the table: shorter ones, as banks write."""
    widths = Counter(len(cells) for _, cells in head)
    width, count = max(widths.items(), key=lambda item: (item[1] > 1, item[0] > 1, item[1]))
    common = [number for number, (_, cells) in enumerate(head) if len(cells) == width]
    first = common[0]
    return first if count > 1 and all(len(cells) < width for _, cells in head[:first]) else 0


def _is_header(sample: Sequence[list[str]]) -> bool:
    """True if the first row names the columns: none of its values has the type of its column."""
    first, rest = sample[0], sample[1:]
    for number, cell in enumerate(first):
        if not cell or cell in _YEARS:
            continue
        kind = kind_of("", [cell], untyped=True)
        if kind.to_json() == {"type": "string"}:
            continue
        column = kind_of("", [cells[number] for cells in rest], untyped=True)
        if not rest or column.to_json() != {"type": "string"}:
            return False
    return True


def _names(source: Source, header: Sequence[str]) -> tuple[list[str], set[str]]:
    """A name for every column: the header's, made unique and at most 64 bytes long.

    Columns without one, if others have one, are left out of rows in which they are empty.
    """
    names, unnamed = list[str](), set[str]()
    for number, cell in enumerate(header, start=1):
        try:
            cell = source.repair.text(cell).strip()
        except Undecodable as error:
            raise InvalidRequest(
                f"{source.name}, column {number} of the header: {error}."
            ) from error
        name = cell.encode()[: CONTRACT.name_bytes].decode(errors="ignore") or f"column_{number}"
        while name in names:
            stem = name.encode()[: CONTRACT.name_bytes - 4].decode(errors="ignore")
            name = f"{stem}_{number}"
        if not cell:
            unnamed.add(name)
        elif name != cell:
            source.notes.append(f"The column {cell[:60]!r} is called {name!r} here.")
        names.append(name)
    return names, unnamed if len(unnamed) < len(names) else set()
