"""JSON with every digit, and its rows: numbers that int64 and double cannot hold become text.

Values of MongoDB's Extended JSON (`{"$date": …}`) become plain values.
"""

import json
import re
from typing import Any

import orjson

from service.importing.source import Repair
from service.records.decimals import exact
from service.records.forms import FORMS
from service.records.intake import Row
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


_INGEST_WORDS = frozenset({"key", "data", "emitted_at", "stream", "op"})
_EXPORTED = frozenset({"id", "stream", "emitted_at"})
_ADDED = frozenset({"fetch_url", "available"})


def parsed(content: bytes, repair: Repair, what: str) -> Row | str:
    """A row from JSON in any of these forms; `what` is its place in a file, such as `line`."""
    try:
        value = loads(content)
    except ValueError as error:
        return f"This {what} is not JSON: {error}."
    return row_of(repair.value(value) if b"\\u0000" in content else value)


def row_of(value: Any) -> Row | str:
    if not isinstance(value, dict):
        return "A record must be a JSON object."
    if value.get("object") == "record" and _EXPORTED <= value.keys():
        return _exported(value)
    if not _is_ingest_form(value):
        return Row(data=value)
    data, op = value.get("data"), value.get("op")
    if op not in (None, "upsert", "put", "delete"):
        return f'"op" is {op!r}; it may be "delete", or be left out.'
    if data is None and op == "delete":
        data = {}
    if not isinstance(data, dict):
        return '"data" must be an object.'
    for name in ("emitted_at", "stream"):
        if not isinstance(value.get(name), (str, type(None))):
            return f'"{name}" must be a string.'
    return Row(data, value.get("key"), value.get("emitted_at"), value.get("stream"), op == "delete")


def _exported(value: dict[str, Any]) -> Row | str:
    data, deleted = value.get("data") or {}, value.get("deleted") is True
    if not isinstance(data, dict) or not isinstance(value["emitted_at"], str):
        return '"data" must be an object, "emitted_at" a string.'
    data = {name: _stored(item) for name, item in data.items()}
    return Row(data, value["id"], value["emitted_at"], str(value["stream"]), deleted)


def _stored(value: Any) -> Any:
    """A value without the members that a source adds to a blob reference."""
    if isinstance(value, list):
        return [_stored(item) for item in value]
    if isinstance(value, dict) and "blob_id" in value:
        return {name: item for name, item in value.items() if name not in _ADDED}
    return value


def _is_ingest_form(value: dict[str, Any]) -> bool:
    if not value.keys() <= _INGEST_WORDS or value.keys() <= {"data"}:
        return False
    return isinstance(value.get("data"), dict) or value.get("op") == "delete"
