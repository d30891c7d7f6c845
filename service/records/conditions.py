"""The steps from a selection to SQL that both engines share."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from service.records.engine import Limit, Selection, Test, Value

#: The comparison of each operator of `ports.OPERATORS`, and of equality.
COMPARISONS: Final = {"eq": "=", "gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


@dataclass(slots=True)
class Condition:
    """SQL clauses of an engine, joined by AND, and their parameters."""

    clauses: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, clause: str, *values: Any) -> None:
        self.clauses.append(clause)
        self.values += values

    def sql(self) -> str:
        return " AND ".join(self.clauses)


def bounds(limit: Limit) -> list[tuple[str, int]]:
    """The comparisons of a limit with the time of a record, in microseconds."""
    both = ((">=", limit.since), ("<", limit.until))
    return [(comparison, time) for comparison, time in both if time is not None]


def by_field(tests: Iterable[Test]) -> dict[int, list[tuple[str, Value]]]:
    """The comparisons with the values of each field."""
    fields: dict[int, list[tuple[str, Value]]] = {}
    for test in tests:
        fields.setdefault(test.ordinal, []).append((COMPARISONS[test.operator], test.value))
    return fields


def on_field(selection: Selection, ordinal: int) -> list[tuple[str, Value]] | None:
    """The comparisons of a selection if all of them use one field; otherwise None.

    Only live records have values, and the times of a limit are the values of one field.
    """
    fields = by_field(selection.tests)
    times = bounds(selection.limit)
    elsewhere = fields.keys() - {ordinal} or (times and ordinal != selection.time_ordinal)
    if selection.limit.keys is not None or elsewhere:
        return None
    return [*times, *fields.get(ordinal, ())]
