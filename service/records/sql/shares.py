"""Divides a search's limit on rows, newest first, among the searched fields."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from service.records.engine import Rows

#: Rows that each of many fields may fill if they share a limit.
FIELD_ROWS_LEAST: Final = 10


def share(limit: int, used: int, fields: int) -> int:
    """The rows of the next of `fields` that share a limit; unused rows go to the later ones."""
    return max(FIELD_ROWS_LEAST, (limit - used) // fields)


def shared(
    fields: Sequence[int], whole: Sequence[list[int]], parts: Sequence[list[int]], limit: int
) -> Rows:
    """The newest rows of each field, which share a limit; what one leaves over, the next may have.

    `whole` and `parts` are columns as in `Rows`, the newest rows of each field first.
    """
    short, passages, cut = Rows(([], []), ([], [], []))
    rows_of, parts_of = _by_field(whole), _by_field(parts)
    for number, ordinal in enumerate(fields):
        most = share(limit, len(short[0]), len(fields) - number)
        for found, by_field in ((short, rows_of), (passages, parts_of)):
            rows = by_field[ordinal][:most]
            for column, values in zip(found, zip(*rows)):
                column += values
            cut |= len(rows) == most
    return Rows(short, passages, cut)


def _by_field(columns: Sequence[list[int]]) -> dict[int, list[tuple[int, ...]]]:
    """The rows of some columns, by the ordinal, which is the second one."""
    rows = defaultdict[int, list[tuple[int, ...]]](list)
    for row in zip(*columns):
        rows[row[1]].append(row)
    return rows
