"""Selections as SQL conditions on `record r` and `cell v`, with their parameters."""

from dataclasses import dataclass, field
from typing import Any, Final

from service.records.engine import Limit, Selection, Test
from service.records.postgres.keys import key_of

#: Each operator of `ports.OPERATORS`, and equality.
SQL: Final = {"eq": "=", "gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


@dataclass(slots=True)
class Condition:
    """SQL and its parameters."""

    clauses: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, clause: str, *values: Any) -> None:
        self.clauses.append(clause)
        self.values += values

    def sql(self) -> str:
        return " AND ".join(self.clauses) or "true"


def of_limit(limit: Limit, condition: Condition | None = None, *, record: str = "r") -> Condition:
    """The condition that a record is inside a limit; `record` is its alias."""
    found = condition or Condition()
    if limit.since is not None:
        found.add(f"{record}.at >= %s", limit.since)
    if limit.until is not None:
        found.add(f"{record}.at < %s", limit.until)
    if limit.keys is not None:
        found.add(f"{record}.record_key = ANY(%s)", sorted(limit.keys))
    return found


def of_records(selection: Selection, *, record: str = "r") -> Condition:
    """The condition that a record is selected; `record` is its alias."""
    found = Condition()
    found.add(f"{record}.stream = %s", selection.stream)
    found.add(f"NOT {record}.deleted")
    by_field: dict[int, list[Test]] = {}
    for test in selection.tests:
        by_field.setdefault(test.ordinal, []).append(test)
    for ordinal, tests in by_field.items():
        body = " AND ".join(f"c.key {SQL[test.operator]} %s" for test in tests)
        found.add(
            f"EXISTS (SELECT 1 FROM cell c WHERE c.seq = {record}.seq AND c.ordinal = %s"
            f" AND {body})",
            ordinal,
            *(key_of(test.value) for test in tests),
        )
    of_limit(selection.limit, found, record=record)
    if selection.by_time:
        for bound, operator in ((selection.limit.since, ">="), (selection.limit.until, "<")):
            if bound is not None:  # lets the index on the cursor start at the limit
                found.add(f"{record}.cursor {operator} %s", key_of(bound))
    return found


def of_values(selection: Selection, ordinal: int) -> Condition | None:
    """The condition on `cell v` alone that its record is selected; None if values cannot tell.

    Only live records have values, and the times of a limit are the values of one field.
    """
    limit = selection.limit
    if limit.keys is not None or any(test.ordinal != ordinal for test in selection.tests):
        return None
    found = Condition()
    found.add("v.ordinal = %s", ordinal)
    for bound, operator in ((limit.since, ">="), (limit.until, "<")):
        if bound is not None:
            if ordinal != selection.time_ordinal:
                return None
            found.add(f"v.key {operator} %s", key_of(bound))
    for test in selection.tests:
        found.add(f"v.key {SQL[test.operator]} %s", key_of(test.value))
    return found
