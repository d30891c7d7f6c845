"""Selections as SQL conditions on `record r` and `cell v`, with their parameters."""

import sqlite3
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from service.records.engine import Limit, Selection, Test

#: Each operator of `ports.OPERATORS`, and equality, as SQLite compares.
SQL: Final = {"eq": "=", "gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}
# From this many matching records on, candidates are probed one by one instead of listed first.
FEW_MATCHES: Final = 2_000


@dataclass(slots=True)
class Condition:
    """SQL and its parameters."""

    clauses: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, clause: str, *values: Any) -> None:
        self.clauses.append(clause)
        self.values += values

    def sql(self) -> str:
        return " AND ".join(self.clauses) or "1"


def of_limit(limit: Limit, condition: Condition | None = None, *, record: str = "r") -> Condition:
    """The condition that a record is inside a limit; `record` is its alias."""
    found = condition or Condition()
    if limit.since is not None:
        found.add(f"{record}.at >= ?", limit.since)
    if limit.until is not None:
        found.add(f"{record}.at < ?", limit.until)
    if limit.keys is not None:
        listed = orjson.dumps(sorted(limit.keys)).decode()
        found.add(f"{record}.record_key IN (SELECT value FROM json_each(?))", listed)
    return found


def of_tests(
    db: sqlite3.Connection, tests: tuple[Test, ...], found: Condition, *, record: str = "r"
) -> None:
    """Adds the condition that a record passes every test."""
    by_field: dict[int, list[Test]] = {}
    for test in tests:
        by_field.setdefault(test.ordinal, []).append(test)
    for ordinal, group in by_field.items():
        body = " AND ".join(f"c.value {SQL[test.operator]} ?" for test in group)
        values = [test.value for test in group]
        if _few(db, ordinal, body, values):
            clause = f"{record}.seq IN (SELECT c.seq FROM cell c WHERE c.ordinal = ? AND {body})"
        else:
            clause = (
                f"EXISTS (SELECT 1 FROM cell c WHERE c.seq = {record}.seq "
                f"AND c.ordinal = ? AND {body})"
            )
        found.add(clause, ordinal, *values)


def of_records(db: sqlite3.Connection, selection: Selection, *, record: str = "r") -> Condition:
    """The condition that a record is selected; `record` is its alias."""
    found = Condition()
    found.add(f"{record}.stream = ?", selection.stream)
    found.add(f"{record}.deleted = 0")
    of_tests(db, selection.tests, found, record=record)
    of_limit(selection.limit, found, record=record)
    if selection.by_time:
        for bound, operator in ((selection.limit.since, ">="), (selection.limit.until, "<")):
            if bound is not None:  # lets the index on the cursor start at the limit
                found.add(f"{record}.cursor {operator} ?", bound)
    return found


def of_values(selection: Selection, ordinal: int) -> Condition | None:
    """The condition on `cell v` alone that its record is selected; None if values cannot tell.

    Only live records have values, and the times of a limit are the values of one field.
    """
    limit = selection.limit
    if limit.keys is not None or any(test.ordinal != ordinal for test in selection.tests):
        return None
    found = Condition()
    found.add("v.ordinal = ?", ordinal)
    for bound, operator in ((limit.since, ">="), (limit.until, "<")):
        if bound is not None:
            if ordinal != selection.time_ordinal:
                return None
            found.add(f"v.value {operator} ?", bound)
    for test in selection.tests:
        found.add(f"v.value {SQL[test.operator]} ?", test.value)
    return found


def _few(db: sqlite3.Connection, ordinal: int, body: str, values: list[Any]) -> bool:
    found = db.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM cell c WHERE c.ordinal = ? AND {body} LIMIT ?)",
        (ordinal, *values, FEW_MATCHES + 1),
    ).fetchone()[0]
    return bool(found <= FEW_MATCHES)
