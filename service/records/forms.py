"""Forms of times other than ISO 8601: a manifest declares them as `x_rung_form`.

A time is kept as it was written. Each form reads a value as microseconds since 1970 UTC, None if it
is no such time. A time without an offset counts as UTC.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Final

from service.records.decimals import parse

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: The years 1 to 9999, in microseconds.
_RANGE: Final = (-62_135_596_800_000_000, 253_402_300_800_000_000)
_CLOCK = r"(?:,?[ T]+(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(?: ?([AaPp])\.?[Mm]\.?)?)?"
_SHORT = re.compile(rf"(\d{{1,2}})([./-])(\d{{1,2}})\2(\d{{4}}|\d\d){_CLOCK}", re.ASCII)
_LONG = re.compile(rf"(\d{{4}})([./-])(\d{{1,2}})\2(\d{{1,2}}){_CLOCK}", re.ASCII)
_MAIL = re.compile(
    r"(?:[A-Z][a-z]{2},? )?(?:\d{1,2} [A-Z][a-z]{2} \d{4} |[A-Z][a-z]{2} +\d{1,2} )\d\d:\d\d.*"
)
#: Two-digit years from here on are of the last century.
_PIVOT: Final = 69


def since_epoch(found: datetime) -> int:
    """Microseconds from 1970 UTC to a time; one without an offset counts as UTC."""
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return (found - EPOCH) // _MICROSECOND


def _count(value: Any, unit: int) -> int | None:
    """A number of units, each of so many microseconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    number = parse(value) if isinstance(value, str) else Decimal(repr(value))
    if number is None or not number.is_finite() or number.adjusted() > len(str(_RANGE[1])):
        return None
    found = int(number * unit)
    return found if _RANGE[0] <= found < _RANGE[1] else None


def _date(value: Any, order: str) -> int | None:
    """A date with separators, and perhaps a time; `order` is `dmy`, `mdy` or `ymd`."""
    match = (_LONG if order == "ymd" else _SHORT).fullmatch(value) if _is_text(value) else None
    if match is None:
        return None
    first, _, second, third, hour, minute, seconds, half = match.groups()
    parts = dict(zip(order, map(int, (first, second, third))))
    year = parts["y"]
    if order != "ymd" and len(third) == 2:
        year += 1900 if year >= _PIVOT else 2000
    hours = int(hour or 0)
    if half:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half in "Pp" else 0)
    try:
        return since_epoch(
            datetime(year, parts["m"], parts["d"], hours, int(minute or 0), int(seconds or 0))
        )
    except ValueError:
        return None


def _mail(value: Any) -> int | None:
    """An RFC 2822 date, or one as C's asctime writes it."""
    if not _is_text(value) or not _MAIL.fullmatch(value):
        return None
    try:
        return since_epoch(parsedate_to_datetime(value))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 64


#: Forms that may lack a time of day.
DATES: Final = ("day-first", "month-first", "year-first")

#: Form -> how it reads a value.
FORMS: Final[dict[str, Callable[[Any], int | None]]] = {
    "unix-seconds": lambda value: _count(value, 1_000_000),
    "unix-milliseconds": lambda value: _count(value, 1_000),
    "unix-microseconds": lambda value: _count(value, 1),
    "rfc-2822": _mail,
    "day-first": lambda value: _date(value, "dmy"),
    "month-first": lambda value: _date(value, "mdy"),
    "year-first": lambda value: _date(value, "ymd"),
}
