"""JSON with every digit: numbers that int64 and double cannot hold become text.

Values of MongoDB's Extended JSON (`{"$date": …}`) become plain values.
"""

import json
import re
from typing import Any

import orjson

from service.records.decimals import exact
from service.records.forms import FORMS
from service.records.values import moment

#: A number with a fraction or an exponent, or one of 19 digits; some strings hold such text too.
_RISKY = re.compile(
    rb"[:,\[]\s*(-?(?:\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)|\d{19,}))(?=\s*[,}\]])"
)
_WRAPPED = b'"$'
_NUMBERS = ("$numberLong", "$numberInt", "$numberDouble", "$numberDecimal")
_NUMERAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class Numeral(str):
    """The text of a JSON number that int64 and double cannot hold."""


def loads(content: bytes) -> Any:
    """The value of a JSON text; raises ValueError for other text."""
    risky = any(repr(float(number)) != number.decode() for number in _RISKY.findall(content))
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if not risky or "infinity" not in error.msg:
            raise
    if risky:
        try:
            value = json.loads(content, parse_float=_number, parse_int=_number)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
    return _unwrapped(value) if _WRAPPED in content else value


def _number(text: str) -> Any:
    found = exact(text)
    return Numeral(text) if found is None else found


def _unwrapped(value: Any) -> Any:
    """A value without the wrappers of Extended JSON."""
    if isinstance(value, list):
        return [_unwrapped(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, inner),) = value.items()
        if name == "$oid" and isinstance(inner, str):
            return inner
        if name in _NUMBERS and isinstance(inner, str) and _NUMERAL.fullmatch(inner):
            return _number(inner)
        if name == "$date":
            return _date(_unwrapped(inner))
    return {name: _unwrapped(item) for name, item in value.items()}


def _date(value: Any) -> Any:
    """A date of Extended JSON: text as it is, milliseconds since 1970 as a date-time."""
    at = FORMS["unix-milliseconds"](value) if isinstance(value, int) else None
    return value if at is None else moment(at)
