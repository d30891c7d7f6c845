"""Dates in a question: a day, a month or a year, in the ways people write them."""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from evidence.fold import fold
from evidence.languages import LANGUAGES

_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Period(NamedTuple):
    """A time from `since` to before `until`, in microseconds since 1970 UTC."""

    since: int
    until: int


def find_period(text: str) -> tuple[Period | None, str]:
    """(the day, month or year a text names or None, the text without it).

    A month needs its year, and a year alone must be a number of four digits.
    """
    for pattern in _patterns():
        if match := pattern.search(text):
            period = _period(match)
            if period is not None:
                return period, f"{text[: match.start()]} {text[match.end() :]}"
    return None, text


@lru_cache(maxsize=1)
def _names() -> dict[str, int]:
    """The number of each month name, folded."""
    return {
        fold(name).strip(): number
        for language in LANGUAGES.values()
        for number, spellings in enumerate(language.get("months", "").split(), start=1)
        for name in spellings.split("/")
    }


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], ...]:
    """The most exact first. Names are matched by their letters and looked up folded."""
    name, day = r"(?P<name>[^\W\d_]{3,})\.?", r"(?P<day>[0-3]?\d)"
    spelled = (
        rf"\b{_YEAR}-(?P<month>[01]\d)-{day}\b",
        rf"\b{day}(?:st|nd|rd|th|\.|er)?(?:\s+(?:of|de))?\s+{name}(?:\s+de)?,?\s+{_YEAR}\b",
        rf"\b{name}\s+{day}(?:st|nd|rd|th)?,?\s+{_YEAR}\b",
        rf"\b{_YEAR}-(?P<month>[01]\d)\b(?!-)",
        rf"\b{name}(?:\s+(?:of|de))?,?\s+{_YEAR}\b",
        rf"(?<![\w.,-]){_YEAR}(?![\w-]|[.,]\d)",
        rf"{_YEAR}年(?:(?P<month>\d{{1,2}})月(?:(?P<day>\d{{1,2}})日)?)?",
    )
    return tuple(re.compile(pattern) for pattern in spelled)


def _period(found: re.Match[str]) -> Period | None:
    parts = found.groupdict()
    year, month = int(parts["year"]), 0
    if parts.get("month"):
        month = int(parts["month"])
    elif parts.get("name"):
        month = _names().get(fold(parts["name"]).strip(), 0)
        if not month:
            return None
    day = int(parts["day"]) if parts.get("day") else 0
    if month > 12 or (month and day > monthrange(year, month)[1]):
        return None
    first = datetime(year, month or 1, day or 1, tzinfo=UTC)
    if day:
        last = first + timedelta(days=1)
    elif month:
        last = first + timedelta(days=monthrange(year, month)[1])
    else:
        last = datetime(year + 1, 1, 1, tzinfo=UTC)
    return Period((first - _EPOCH) // _MICROSECOND, (last - _EPOCH) // _MICROSECOND)
