"""Converts times between ISO 8601 and the store's form: microseconds since 1970 UTC."""

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The time of a record is needed three times in a row: for its order, its limit and its cell.
TIMES_CACHED: Final = 1_024
_MICROSECOND: Final = timedelta(microseconds=1)
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]| ?[+-]\d\d:?\d\d)?)?"
)
_DURATION = re.compile(r"([1-9][0-9]{0,4})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_BEFORE_OFFSET = re.compile(r" (?=[+-])")


def since_epoch(time: datetime) -> int:
    """Microseconds from 1970 UTC to a time; one without an offset counts as UTC."""
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - EPOCH) // _MICROSECOND


@lru_cache(maxsize=TIMES_CACHED)
def microseconds(text: str) -> int | None:
    """Microseconds from 1970 UTC to an ISO 8601 date or date-time; None for other text.

    Also None for a time outside the years 1 to 9999 in UTC, which could not be shown. A time
    without an offset counts as UTC, a date as its first moment.
    """
    if not _ISO.fullmatch(text):
        return None
    try:
        if len(text) == len("2026-01-31"):
            time = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
        else:
            time = datetime.fromisoformat(_BEFORE_OFFSET.sub("", text.upper()))
        return since_epoch(time if time.tzinfo is None else time.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def duration(text: str) -> timedelta | None:
    """The length of time in a text such as 30s, 10m, 12h, 30d or 8w; None for other text."""
    match = _DURATION.fullmatch(text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None


def to_the_second(time: datetime) -> str:
    """The ISO 8601 text of a time in UTC, without fractions of a second."""
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def moment(stored: int) -> str:
    """The ISO 8601 text in UTC for microseconds since 1970."""
    time = EPOCH + timedelta(microseconds=stored)
    return time.isoformat(timespec="microseconds" if time.microsecond else "seconds").replace(
        "+00:00", "Z"
    )
