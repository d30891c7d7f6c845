"""Selections as SQL conditions on `record r` and `cell v`, with their parameters."""

from service.records.conditions import Condition, bounds, by_field, on_field
from service.records.engine import Limit, Selection
from service.records.postgres.keys import key_of


def of_limit(limit: Limit, condition: Condition | None = None, *, record: str = "r") -> Condition:
    """The condition that a record is inside a limit; `record` is its alias."""
    condition = condition or Condition()
    for comparison, time in bounds(limit):
        condition.add(f"{record}.at {comparison} %s", time)
    if limit.keys is not None:
        condition.add(f"{record}.record_key = ANY(%s)", sorted(limit.keys))
    return condition


def of_records(selection: Selection, *, record: str = "r") -> Condition:
    """The condition that a record is selected; `record` is its alias."""
    condition = Condition()
    condition.add(f"{record}.stream = %s", selection.stream)
    condition.add(f"NOT {record}.deleted")
    for ordinal, comparisons in by_field(selection.tests).items():
        body = " AND ".join(f"c.key {comparison} %s" for comparison, _ in comparisons)
        condition.add(
            f"EXISTS (SELECT 1 FROM cell c WHERE c.seq = {record}.seq AND c.ordinal = %s"
            f" AND {body})",
            ordinal,
            *(key_of(value) for _, value in comparisons),
        )
    of_limit(selection.limit, condition, record=record)
    if selection.by_time:  # lets the index on the cursor start at the limit
        for comparison, time in bounds(selection.limit):
            condition.add(f"{record}.cursor {comparison} %s", key_of(time))
    return condition


def of_values(selection: Selection, ordinal: int) -> Condition | None:
    """The condition on `cell v` alone that its record is selected; None if there is none."""
    comparisons = on_field(selection, ordinal)
    if comparisons is None:
        return None
    condition = Condition()
    condition.add("v.ordinal = %s", ordinal)
    for comparison, value in comparisons:
        condition.add(f"v.key {comparison} %s", key_of(value))
    return condition
