"""Decimal numbers as people write them, and a text for each that sorts as the number does.

A number is kept as it was written. For comparisons it becomes a key: `0`, `1` or `2` for its sign,
the order of magnitude, and its digits. Keys of equal numbers are equal, so `1.10` equals `1.1`.
"""

import re
from collections.abc import Iterable
from decimal import MAX_PREC, Context, Decimal
from math import isfinite
from typing import Final

#: Between thousands, beside the mark that is not the decimal mark.
_SPACES: Final = "'’ \u00a0\u202f"
_POINT = re.compile(
    rf"[+-]?(?:\d+|\d{{1,3}}(?:[,{_SPACES}]\d{{3}})+|(?=\.\d))(?:\.\d*)?(?:[eE][+-]?\d{{1,4}})?",
    re.ASCII,
)
_COMMA = re.compile(rf"[+-]?(?:\d+|\d{{1,3}}(?:[.{_SPACES}]\d{{3}})+|(?=,\d))(?:,\d*)?", re.ASCII)
_GROUPS = {
    mark: str.maketrans(",", ".", other + _SPACES) for mark, other in ((".", ","), (",", "."))
}
_COMPLEMENT = str.maketrans("0123456789", "9876543210")
_MIDDLE, _WIDTH = 50_000, 5
_LONGEST = 1_000
_EXACT = Context(prec=MAX_PREC)


def parse(text: str, mark: str = ".") -> Decimal | None:
    """The number a text writes with this decimal mark; None if it writes none."""
    text = text.replace("\u2212", "-")
    pattern = _POINT if mark == "." else _COMMA
    if len(text) > _LONGEST or not pattern.fullmatch(text):
        return None
    return Decimal(text.translate(_GROUPS[mark]))


def sort_key(number: Decimal) -> str:
    """A text that sorts as the number does."""
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return "1"
    magnitude = len(text) + int(exponent) + _MIDDLE
    text = text.rstrip("0")
    if not sign:
        return f"2{magnitude:0{_WIDTH}}{text}"
    key = f"{magnitude:0{_WIDTH}}{text}".translate(_COMPLEMENT)
    return f"0{key}~"


def of_key(key: str) -> Decimal:
    """The number of a key."""
    if key == "1":
        return Decimal(0)
    body = key[1:] if key[0] == "2" else key[1:-1].translate(_COMPLEMENT)
    digits = tuple(map(int, body[_WIDTH:]))
    return Decimal((int(key[0] == "0"), digits, int(body[:_WIDTH]) - _MIDDLE - len(digits)))


def total(counted: Iterable[tuple[Decimal, int]]) -> Decimal:
    """The exact sum of numbers, each as often as it is counted."""
    found = Decimal(0)
    for number, count in counted:
        found = _EXACT.add(found, _EXACT.multiply(number, Decimal(count)))
    return found


def plain(number: Decimal) -> str:
    """A number without an exponent and without zeros at the end of its fraction."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def exact(text: str) -> int | float | None:
    """The JSON number that keeps every digit of a numeral; None if int64 and double lose some."""
    if len(text) > _LONGEST:
        return None
    if text.lstrip("-").isdigit():
        whole = int(text)
        return whole if -(2**63) <= whole < 2**63 else None
    found = float(text)
    if repr(found) == text:
        return found
    number = Decimal(text)
    if not isfinite(found):
        return None
    kept = Decimal(repr(found))
    same = kept == number if "e" in text.lower() else kept.as_tuple() == number.as_tuple()
    return found if same else None
