"""Typed filters to SQL over `cell`: declared, granted fields, bound parameters only."""

import sqlite3
from dataclasses import dataclass, field
from typing import Any

from evidence.errors import InvalidRequest
from service.ports import Filter, Scalar
from service.records.manifest import FieldType, sortable
from service.records.view import StreamView

# From this many matching records on, candidates are probed one by one instead of listed first.
FEW_MATCHES = 2_000
OPERATORS = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


@dataclass(slots=True)
class Condition:
    """SQL over the record alias `r`, with its parameters."""

    clauses: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def sql(self) -> str:
        return " AND ".join(self.clauses) or "1"


def compile_filter(db: sqlite3.Connection, view: StreamView, wanted: Filter) -> Condition:
    """The condition of a typed filter on one stream.

    Raises 403 `field_not_granted`, or 400 `invalid_filter` for a field or operator the stream
    does not declare.
    """
    condition = Condition()
    for name, spec in wanted.items():
        tests = tests_of(view, name, spec)
        ordinal = view.ordinals[name]
        body = " AND ".join(f"c.value {operator} ?" for operator, _ in tests)
        values = [value for _, value in tests]
        if _few(db, ordinal, body, values):
            listed = f"r.seq IN (SELECT c.seq FROM cell c WHERE c.ordinal = ? AND {body})"
        else:
            listed = (
                "EXISTS (SELECT 1 FROM cell c WHERE c.seq = r.seq AND c.ordinal = ? " f"AND {body})"
            )
        condition.clauses.append(listed)
        condition.values += [ordinal, *values]
    return condition


def tests_of(view: StreamView, name: str, spec: Any) -> list[tuple[str, Any]]:
    """What a filter asks of the values of one field: SQL operators, and what stands after them.

    Raises as `compile_filter` does.
    """
    view.require(name, param="filter")
    bounds = spec if isinstance(spec, dict) else {"eq": spec}
    return [_test(view, name, operator, value) for operator, value in bounds.items()]


def _few(db: sqlite3.Connection, ordinal: int, body: str, values: list[Any]) -> bool:
    found = db.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM cell c WHERE c.ordinal = ? AND {body} LIMIT ?)",
        (ordinal, *values, FEW_MATCHES + 1),
    ).fetchone()[0]
    return bool(found <= FEW_MATCHES)


def _test(view: StreamView, name: str, operator: str, value: Scalar) -> tuple[str, Any]:
    manifest = view.manifest
    if operator == "eq":
        allowed = name in manifest.exact_filters
    else:
        allowed = operator in manifest.range_filters.get(name, ())
    if not allowed or name not in view.ordinals:
        raise InvalidRequest(
            f"The stream {view.name!r} does not offer "
            f"{'an exact' if operator == 'eq' else f'a {operator}'} filter on {name!r}. "
            "Call schema with this stream for the fields that can be filtered, or use search.",
            code="invalid_filter",
            param="filter",
            field=name,
        )
    kind = manifest.fields[name]
    stored = sortable(_typed(value, kind), kind)
    if stored is None:
        raise InvalidRequest(
            f"The filter value for {name!r} is not of type {kind.format or kind.type}.",
            code="invalid_filter",
            param="filter",
            field=name,
        )
    return OPERATORS.get(operator, "="), stored


def _typed(value: Scalar, kind: FieldType) -> Scalar:
    """Text as the declared type, since a query string carries nothing but text."""
    if not isinstance(value, str):
        return str(value) if kind.type == "string" and not isinstance(value, bool) else value
    if kind.type == "boolean":
        return {"true": True, "false": False}.get(value, value)
    if kind.is_number:
        try:
            return int(value) if kind.type == "integer" else float(value)
        except ValueError:
            return value
    return value
