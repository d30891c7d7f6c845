"""Selections as SQL conditions on `record r` and `cell v`, with their parameters."""

import sqlite3
from typing import Any, Final

import orjson

from service.records.conditions import Condition, bounds, by_field, on_field
from service.records.engine import Limit, Selection

# From this many matching records on, candidates are probed one by one instead of listed first.
FEW_MATCHES: Final = 2_000


def of_limit(limit: Limit, condition: Condition | None = None, *, record: str = "r") -> Condition:
    """The condition that a record is inside a limit; `record` is its alias."""
    condition = condition or Condition()
    for comparison, time in bounds(limit):
        condition.add(f"{record}.at {comparison} ?", time)
    if limit.keys is not None:
        listed = orjson.dumps(sorted(limit.keys)).decode()
        condition.add(f"{record}.record_key IN (SELECT value FROM json_each(?))", listed)
    return condition


def of_records(db: sqlite3.Connection, selection: Selection, *, record: str = "r") -> Condition:
    """The condition that a record is selected; `record` is its alias."""
    condition, driver = Condition(), ""
    for ordinal, comparisons in by_field(selection.tests).items():
        body = " AND ".join(f"c.value {comparison} ?" for comparison, _ in comparisons)
        values = [value for _, value in comparisons]
        if _few(db, ordinal, body, values):
            clause = f"{record}.seq IN (SELECT c.seq FROM cell c WHERE c.ordinal = ? AND {body})"
            driver = "+"  # these records are read, not all of the stream in its order
        else:
            clause = (
                f"EXISTS (SELECT 1 FROM cell c WHERE c.seq = {record}.seq "
                f"AND c.ordinal = ? AND {body})"
            )
        condition.add(clause, ordinal, *values)
    condition.add(f"{driver}{record}.stream = ?", selection.stream)
    condition.add(f"{record}.deleted = 0")
    of_limit(selection.limit, condition, record=record)
    if selection.by_time:  # lets the index on the cursor start at the limit
        for comparison, time in bounds(selection.limit):
            condition.add(f"{record}.cursor {comparison} ?", time)
    return condition


def of_values(selection: Selection, ordinal: int) -> Condition | None:
    """The condition on `cell v` alone that its record is selected; None if there is none."""
    comparisons = on_field(selection, ordinal)
    if comparisons is None:
        return None
    condition = Condition()
    condition.add("v.ordinal = ?", ordinal)
    for comparison, value in comparisons:
        condition.add(f"v.value {comparison} ?", value)
    return condition


def _few(db: sqlite3.Connection, ordinal: int, body: str, values: list[Any]) -> bool:
    matches = db.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM cell c WHERE c.ordinal = ? AND {body} LIMIT ?)",
        (ordinal, *values, FEW_MATCHES + 1),
    ).fetchone()[0]
    return bool(matches <= FEW_MATCHES)
