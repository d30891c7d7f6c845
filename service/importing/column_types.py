"""Detects the type of a column (number, decimal, time or text), and reports ambiguous columns."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from service.importing.json_values import Numeral
from evidence.manifest.forms import FORMS, bare_number, currencies, decimal_in, exact_number
from evidence.manifest.values import COMMA, DECIMAL
from evidence.times import microseconds

_TYPES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    Numeral: DECIMAL,
    dict: "object",
    list: "array",
}
INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NUMERAL: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
BOOLEANS: Final = {"true": True, "false": False}
#: Words in the names of fields that hold times.
_TIME_WORDS: Final = frozenset(
    "ts at on time times timestamp unixtime epoch utc date datetime day when start end begin"
    " created updated modified edited changed deleted sent received posted published read seen"
    " ctime mtime atime expires expiry since until timestampms ms last first played".split()
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_UNIX = re.compile(r"\d{9,16}(\.\d+)?", re.ASCII)
#: Numbers that are likely times, in units since 1970: the years 1980 to 2120.
_UNITS: Final = (
    ("unix-seconds", 315_532_800, 4_733_510_400),
    ("unix-milliseconds", 315_532_800_000, 4_733_510_400_000),
    ("unix-microseconds", 315_532_800_000_000, 4_733_510_400_000_000),
)
_LEADING_ZERO = re.compile(r"[+-]?0\d")
_FRACTION = re.compile(r"[.,]\d+$")
#: The longest value that may be decisive for its column, and how it begins.
DECISIVE_CHARS: Final = 40
DECISIVE_CACHED: Final = 4_096
_NUMERIC: Final = re.compile(r"\W{0,4}(?:[A-Za-zł]{1,3}\W{1,2})?\W{0,2}\d")
#: A number in which the mark can only be that of decimals.
_PLAIN: Final = re.compile(r"-?\d+(?:([.,])(?:\d\d?|\d{4,}))?")
#: The most digits of an integer that is a number in a manifest.
LONGEST: Final = 18


#: The names that lead to a field, outermost first.
Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type as a manifest declares it; `doubt` says why a column of likely times stays text."""

    type: str
    format: str | None = None
    form: str | None = None
    doubt: str | None = None

    @property
    def is_time(self) -> bool:
        return self.form in FORMS or self.format in ("date", "date-time")

    def to_json(self) -> dict[str, Any]:
        members = {"type": self.type, "format": self.format, "x_rung_form": self.form}
        members["x_pdpp_type"] = "timestamp" if self.form in FORMS else None
        return {name: word for name, word in members.items() if word}


def as_stored(text: Any, type: str) -> Any:
    """Text as a value of a type; other text stays unchanged, and an empty cell is no value."""
    if type == "string" or not isinstance(text, str):
        return text
    if type == "integer":
        return int(text) if INTEGER.fullmatch(text) else text or None
    if type == "number" and _NUMERAL.fullmatch(text):
        number = exact_number(text)
        return text if number is None else number
    return BOOLEANS.get(text.lower(), text or None) if type == "boolean" else text or None


def kind_of(name: str, values: Sequence[Any], *, untyped: bool) -> Kind:
    """The kind of a column from a sample of its values; `untyped` ones are all text, as in CSV."""
    counted = Counter(_TYPES.get(type(value), "string") for value in values if value != "")
    if not counted:
        return Kind("string")
    types = counted.keys()
    if types == {"string"}:
        return _text(name, [value for value in values if value], untyped)
    if types <= {"integer", "number", DECIMAL}:
        kind = Kind("integer" if types == {"integer"} else "number")
        if DECIMAL in types:
            kind = Kind("string", DECIMAL)
        form = _unix(name, [str(value) for value in values])
        return replace(kind, format=None, form=form) if form else kind
    kind = Kind(counted.most_common(1)[0][0])
    return Kind("string") if kind.type == DECIMAL else kind


def _text(name: str, texts: list[str], untyped: bool) -> Kind:
    if untyped and all(map(INTEGER.fullmatch, texts)):
        return Kind("integer", form=_unix(name, texts))
    if untyped and all(text.lower() in BOOLEANS for text in texts):
        return Kind("boolean")
    if all(microseconds(text) is not None for text in texts):
        dates = all(len(text) == len("2026-01-31") for text in texts)
        return Kind("string", "date" if dates else "date-time")
    if form := _unix(name, texts):
        return Kind("string", form=form)
    for form in ("rfc-2822", "year-first", "month-name"):
        if all(FORMS[form](text) is not None for text in texts):
            return Kind("string", form=form)
    return _short_date(texts) or _decimal(texts) or Kind("string")


def _unix(name: str, texts: Sequence[str]) -> str | None:
    """The unit of times since 1970 in a column named like a time."""
    time_words = _TIME_WORDS & {word.lower() for word in _WORD.findall(name)}
    if not time_words or not all(map(_UNIX.fullmatch, texts)):
        return None
    numbers = [float(text) for text in texts]
    least, most = min(numbers), max(numbers)
    return next((form for form, low, high in _UNITS if low <= least and most < high), None)


def _short_date(texts: list[str]) -> Kind | None:
    """Dates such as 31.1.2026 or 1/31/26, unless the order of day and month is ambiguous."""
    days = [FORMS["day-first"](text) for text in texts]
    months = [FORMS["month-first"](text) for text in texts]
    if None in days and None in months:
        if (None, None) in zip(days, months):
            return None
        day, month = texts[months.index(None)], texts[days.index(None)]
        return Kind("string", doubt=f"{day!r} begins with the day, {month!r} with the month")
    if None in days:
        return Kind("string", form="month-first")
    if None in months or days == months or all("." in text for text in texts):
        return Kind("string", form="day-first")
    return Kind("string", doubt=f"{texts[0]!r} may begin with the day or with the month")


def _decimal(texts: list[str]) -> Kind | None:
    """Decimals with a point or a comma; text if every value can be read both ways."""
    units = {unit for text in texts for unit in currencies(text)}
    if len(units) > 1:
        return Kind("string", doubt=f"it has several currencies: {', '.join(sorted(units)[:3])}")
    texts = list(map(bare_number, texts))
    likely = units or any(_FRACTION.search(text) or len(text) > LONGEST for text in texts)
    if not likely or any(map(_LEADING_ZERO.match, texts)):
        return None
    point = all(decimal_in(text) is not None for text in texts)
    comma = all(decimal_in(text, ",") is not None for text in texts)
    if point and comma:
        doubt = f"the separator in {texts[0]!r} may group digits or be the decimal separator"
        return Kind("string", DECIMAL, doubt=doubt)
    return Kind("string", DECIMAL, None if point else COMMA) if point or comma else None


def decisive(text: str) -> str | None:
    """What a value shows about its column: an order of day and month, a decimal mark, a currency.

    None for values that show nothing, which are most.
    """
    if len(text) > DECISIVE_CHARS or not _NUMERIC.match(text):
        return None
    if plain := _PLAIN.fullmatch(text):
        return plain[1]
    return _decisive(text)


@lru_cache(maxsize=DECISIVE_CACHED)
def _decisive(text: str) -> str | None:
    orders = [form for form in ("day-first", "month-first") if FORMS[form](text) is not None]
    if len(orders) == 1:
        return orders[0]
    marks = [mark for mark in ".," if decimal_in(text, mark) is not None]
    units = currencies(text) if marks else []
    return "".join(units + marks) if units or len(marks) == 1 else None


def settle(kinds: dict[Tokens, Kind], comma: bool | None) -> dict[Tokens, Kind]:
    """The kinds, with ambiguous decimals read like those of other columns, or else as text.

    `comma` is the file's own convention.
    """
    marks = {
        kind.form == COMMA for kind in kinds.values() if kind.format == DECIMAL and not kind.doubt
    }
    mark = marks.pop() if len(marks) == 1 else comma

    def settled(kind: Kind) -> Kind:
        if kind.format != DECIMAL or not kind.doubt:
            return kind
        if mark is None:
            return Kind("string", doubt=kind.doubt)
        return Kind("string", DECIMAL, COMMA if mark else None)

    return {name: settled(kind) for name, kind in kinds.items()}
