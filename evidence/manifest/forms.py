"""The forms that a manifest declares as `x_rung_form`: decimals, and times not in ISO 8601.

A time is stored as written. Each form parses a value into microseconds since 1970 UTC, None if it
is not such a time. A time without an offset counts as UTC.

A decimal is stored as written, too. For comparisons it becomes a key: `0`, `1` or `2` for its sign,
the order of magnitude, and its digits. Keys sort like the numbers, and equal numbers have equal
keys, so `1.10` equals `1.1`.
"""

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import MAX_PREC, Context, Decimal
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final

from evidence.times import since_epoch

#: The years 1 to 9999, in microseconds.
_RANGE: Final = (-62_135_596_800_000_000, 253_402_300_800_000_000)
_CLOCK = r"(?:,?[ T]+(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(?: ?([AaPp])\.?[Mm]\.?)?)?"
_SHORT = re.compile(rf"(\d{{1,2}})([./-])(\d{{1,2}})\2(\d{{4}}|\d\d){_CLOCK}", re.ASCII)
_LONG = re.compile(rf"(\d{{4}})([./-])(\d{{1,2}})\2(\d{{1,2}}){_CLOCK}", re.ASCII)
_MAIL = re.compile(
    r"(?:[A-Z][a-z]{2},? )?(?:\d{1,2} [A-Z][a-z]{2} \d{4} |[A-Z][a-z]{2} +\d{1,2} )\d\d:\d\d.*"
)
#: Dates with the English name of a month, such as `Mar 3, 2026, 3:02:23 PM` or `03-Mar-26`.
_WITH_MONTH = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?"
    r"(?:([a-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})"
    r"|(\d{1,2})(?:st|nd|rd|th)?[ -]([a-z]{3,9})\.?,?[ -](\d{4}|\d\d))"
    r"(?:,?(?: at)?[ \u202f]+(\d{1,2}:\d\d(?::\d\d)?(?:[ \u202f]?[ap]\.?m\.?)?)(?: (?:UTC|GMT))?)?",
    re.ASCII | re.IGNORECASE,
)
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
#: Two-digit years from here on belong to the last century.
_PIVOT: Final = 69


def _count(value: Any, unit: int) -> int | None:
    """Microseconds from a number of units of some length."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    number = decimal_in(value) if isinstance(value, str) else Decimal(repr(value))
    if number is None or not number.is_finite() or number.adjusted() > len(str(_RANGE[1])):
        return None
    microseconds = int(number * unit)
    return microseconds if _RANGE[0] <= microseconds < _RANGE[1] else None


def _date(value: Any, order: str) -> int | None:
    """A date with separators, with or without a time; `order` is `dmy`, `mdy` or `ymd`."""
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
    """An RFC 2822 date, or a date in the format of C's asctime."""
    if not _is_text(value) or not _MAIL.fullmatch(value):
        return None
    try:
        return since_epoch(parsedate_to_datetime(value))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _month_name(value: Any) -> int | None:
    """A date with the English name of a month, with or without a time."""
    match = _WITH_MONTH.fullmatch(value) if _is_text(value) else None
    if match is None:
        return None
    word, day, year, first, month_word, last, clock = match.groups()
    name = (word or month_word).lower()
    months = [number for number, month in enumerate(_MONTHS, 1) if month.startswith(name)]
    if name == "sept":
        months = [9]
    if len(months) != 1:
        return None
    text = f"{day or first}/{months[0]}/{year or last}"
    return _date(f"{text} {clock}".replace("\u202f", " ") if clock else text, "dmy")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 64


#: Forms that may lack a time of day.
DATES: Final = ("day-first", "month-first", "year-first", "month-name")

#: Form -> its parser.
FORMS: Final[dict[str, Callable[[Any], int | None]]] = {
    "unix-seconds": lambda value: _count(value, 1_000_000),
    "unix-milliseconds": lambda value: _count(value, 1_000),
    "unix-microseconds": lambda value: _count(value, 1),
    "rfc-2822": _mail,
    "day-first": lambda value: _date(value, "dmy"),
    "month-first": lambda value: _date(value, "mdy"),
    "year-first": lambda value: _date(value, "ymd"),
    "month-name": _month_name,
}


#: Thousands separators, in addition to the mark that is not the decimal mark.
_SPACES: Final = "'’ \u00a0\u202f"
_WITH_POINT = re.compile(
    rf"[+-]?(?:\d+|\d{{1,3}}(?:[,{_SPACES}]\d{{3}})+|(?=\.\d))(?:\.\d*)?(?:[eE][+-]?\d{{1,4}})?",
    re.ASCII,
)
_WITH_COMMA = re.compile(
    rf"[+-]?(?:\d+|\d{{1,3}}(?:[.{_SPACES}]\d{{3}})+|(?=,\d))(?:,\d*)?", re.ASCII
)
_MARKS = {mark: str.maketrans(",", ".", rest + _SPACES) for mark, rest in ((".", ","), (",", "."))}
_COMPLEMENT = str.maketrans("0123456789", "9876543210")
#: The order of magnitude of 0.1 in a key.
MIDDLE: Final = 50_000
_WIDTH = 5
_LONGEST = 1_000
#: The longest amount with a currency.
_SHORT_CHARS: Final = 40
_EXACT = Context(prec=MAX_PREC)
_ZERO: Final = Decimal(0)
#: Significant digits of an average.
_AVERAGE = Context(prec=16)


_CODES: Final = "EUR USD GBP CHF JPY CAD AUD NZD SEK NOK DKK PLN CZK HUF INR CNY BRL MXN ZAR TRY"
_CURRENCY: Final = re.compile(
    rf"[$€£¥₹₽₺₩₪₫₴₦฿]|\b(?:{_CODES.replace(' ', '|')})\b|(?<!\w)(?:kr|zł)\.?(?!\w)"
)
_SIGNED: Final = re.compile(r"([+-]?)\s*([^-]*?)\s*(-?)")


def currencies(text: str) -> list[str]:
    """The currencies that a text names."""
    return _CURRENCY.findall(text)


def bare_number(text: str) -> str:
    """An amount without its currency; one in brackets or with a minus behind it is negative."""
    text = text.replace("\u2212", "-").strip()
    if len(text) > _SHORT_CHARS or text[-1:].isdigit() and text.lstrip("+-")[:1].isdigit():
        return text
    bare = _CURRENCY.sub("", text, count=1).strip()
    if bare[:1] == "(" and bare[-1:] == ")":
        bare = f"-{_CURRENCY.sub('', bare[1:-1], count=1).strip()}"
    signed = _SIGNED.fullmatch(bare)
    return f"{signed[1] or signed[3]}{signed[2]}" if signed else text


def decimal_in(text: str, mark: str = ".") -> Decimal | None:
    """The number that a text writes with this decimal mark; None for other text."""
    text = bare_number(text)
    pattern = _WITH_POINT if mark == "." else _WITH_COMMA
    if len(text) > _LONGEST or not pattern.fullmatch(text):
        return None
    return Decimal(text.translate(_MARKS[mark]))


def decimal_key(number: Decimal) -> str:
    """A text that sorts like the number."""
    if not number:
        return "1"
    digits = str(number).partition("E")[0].replace(".", "").strip("-0")
    key = str(number.adjusted() + 1 + MIDDLE).zfill(_WIDTH) + digits
    return f"2{key}" if number > 0 else f"0{key.translate(_COMPLEMENT)}~"


def decimal_of_key(key: str) -> Decimal:
    """The number of a key."""
    if key == "1":
        return _ZERO
    sign, body = ("", key[1:]) if key[0] == "2" else ("-", key[1:-1].translate(_COMPLEMENT))
    digits = body[_WIDTH:]
    return Decimal(f"{sign}{digits}E{int(body[:_WIDTH]) - MIDDLE - len(digits)}")


def decimal_total(counted: Iterable[tuple[Decimal, int]]) -> Decimal:
    """The exact sum of numbers, each multiplied by its count."""
    total = _ZERO
    for number, count in counted:
        total = _EXACT.add(total, number if count == 1 else _EXACT.multiply(number, Decimal(count)))
    return total


def decimal_sum(number: Decimal, addend: Decimal) -> Decimal:
    """The exact sum of two numbers."""
    return _EXACT.add(number, addend)


def decimal_average(total: Decimal, count: int) -> Decimal:
    """The average of `count` numbers, to 16 significant digits."""
    return _AVERAGE.divide(total, Decimal(count))


def plain_decimal(number: Decimal) -> str:
    """A number without an exponent and without trailing zeros in its fraction."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def exact_number(text: str) -> int | float | None:
    """The JSON number with every digit of a numeral; None if int64 and double would lose some."""
    if len(text) > _LONGEST:
        return None
    if text.lstrip("-").isdigit():
        whole = int(text)
        return whole if -(2**63) <= whole < 2**63 else None
    nearest = float(text)
    if repr(nearest) == text:
        return nearest
    number = Decimal(text)
    if not isfinite(nearest):
        return None
    reread = Decimal(repr(nearest))
    same = reread == number if "e" in text.lower() else reread.as_tuple() == number.as_tuple()
    return nearest if same else None
