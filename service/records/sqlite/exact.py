"""SQLite functions for exact sums and averages; they return decimals as sortable keys."""

import sqlite3
from decimal import Decimal

from service.records.engine.selections import Value
from evidence.manifest.forms import decimal_average, decimal_key, decimal_of_key, decimal_sum


def add_functions(db: sqlite3.Connection) -> None:
    """Defines `exact_sum(value)`, `exact_avg(value)` and `exact_key(value)`.

    A value is a number, or the key of a decimal.
    """
    db.create_aggregate("exact_sum", 1, _Sum)  # type: ignore[arg-type]
    db.create_aggregate("exact_avg", 1, _Average)  # type: ignore[arg-type]
    db.create_function("exact_key", 1, _key, deterministic=True)


class _Sum:
    """The first value, the sum of further whole numbers, and that of all other values."""

    __slots__ = ("count", "first", "rest", "whole")

    def __init__(self) -> None:
        self.count = 0

    def step(self, value: Value | None) -> None:
        if value is None:
            return
        self.count += 1
        if self.count == 1:
            self.first, self.whole, self.rest = value, 0, None
        elif isinstance(value, int):
            self.whole += value
        else:
            number = _number(value)
            self.rest = number if self.rest is None else decimal_sum(self.rest, number)

    def finalize(self) -> str | None:
        if self.count == 0:
            return decimal_key(Decimal(0))
        if self.count == 1 and isinstance(self.first, str):
            return self.first
        return decimal_key(self.total)

    @property
    def total(self) -> Decimal:
        total = _number(self.first)
        if self.whole:
            total = decimal_sum(total, Decimal(self.whole))
        return total if self.rest is None else decimal_sum(total, self.rest)


class _Average(_Sum):
    __slots__ = ()

    def finalize(self) -> str | None:
        return decimal_key(decimal_average(self.total, self.count)) if self.count else None


def _number(value: Value) -> Decimal:
    return decimal_of_key(value) if isinstance(value, str) else Decimal(repr(value))


def _key(value: Value | None) -> str | None:
    return None if value is None else decimal_key(_number(value))
