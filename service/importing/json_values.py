"""Reads JSON values from files of any size, one value at a time, and keeps all digits of numbers.

Numbers that int64 and double cannot hold become text; values of MongoDB's Extended JSON
(`{"$date": …}`) become plain values.
"""

import json
import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, NoReturn, TextIO

import orjson

from evidence.errors import InvalidRequest, TooLarge
from evidence.limits import BUDGETS
from service.importing.source import Repair, Source, Undecodable
from evidence.manifest.forms import FORMS, exact_number
from service.records.intake import Row
from evidence.times import moment

#: A number with a fraction or an exponent, or one of 19 digits; some strings contain such text too.
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
    number = exact_number(text)
    return Numeral(text) if number is None else number


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
        if name == "$date":  # text unchanged, or milliseconds since 1970
            date = _unwrapped(inner)
            at = FORMS["unix-milliseconds"](date) if isinstance(date, int) else None
            return date if at is None else moment(at)
    return {name: _unwrapped(item) for name, item in value.items()}


_INGEST_WORDS = frozenset({"key", "data", "emitted_at", "stream", "op"})
_EXPORTED = frozenset({"id", "stream", "emitted_at"})
_SOURCE_MEMBERS = frozenset({"fetch_url", "available"})


def parsed(content: bytes, repair: Repair, what: str) -> Row | str:
    """A row from JSON in any of these forms; `what` names its place in a file, such as `line`."""
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
    data, op = value.get("data"), value.get("op")
    ingest = value.keys() <= _INGEST_WORDS and not value.keys() <= {"data"}
    if not ingest or not (isinstance(data, dict) or op == "delete"):
        return Row(data=value)
    if op not in (None, "upsert", "put", "delete"):
        return f'"op" is {op!r}; it must be "delete" or be omitted.'
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
        return '"data" must be an object, and "emitted_at" must be a string.'
    data = {name: _stored(item) for name, item in data.items()}
    return Row(data, value["id"], value["emitted_at"], str(value["stream"]), deleted)


def _stored(value: Any) -> Any:
    """A value without the members that a source adds to a blob reference."""
    if isinstance(value, list):
        return [_stored(item) for item in value]
    if isinstance(value, dict) and "blob_id" in value:
        return {name: item for name, item in value.items() if name not in _SOURCE_MEMBERS}
    return value


CHUNK_CHARS: Final = 1 << 20
#: An error this close to the end of a piece may be caused by a word or an escape that continues.
CUT_CHARS: Final = 16
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class JsonReader:
    """Reads the JSON text of a source from its beginning, one value or bracket at a time.

    Raises InvalidRequest if the text is not JSON, TooLarge for a value that does not fit into
    memory.
    """

    def __init__(self, source: Source, file: TextIO) -> None:
        self._source, self._name, self._file = source, source.name, file
        self._scan = JSONDecoder().raw_decode
        self._text, self._position, self._before = "", 0, 0

    def next(self) -> str:
        """The next character other than a space; empty at the end."""
        while True:
            spaces = _SPACE.match(self._text, self._position)
            self._position = spaces.end() if spaces else self._position
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._read_on(CHUNK_CHARS):
                return ""

    def value(self) -> str:
        """The JSON of the next value."""
        self.next()
        size = CHUNK_CHARS
        while True:
            try:
                end, problem = self._scan(self._text, self._position)[1], None
            except JSONDecodeError as error:
                end, problem = len(self._text), error
                open_ = error.msg.startswith("Unterminated") or error.pos >= end
                if not open_ and error.pos + CUT_CHARS < end:
                    self._fail(error.msg, error.pos)
            except RecursionError:
                self._fail("The value is nested too deeply", self._position)
            # With less than this left, a number may continue.
            if end + len("e+1") <= len(self._text) or not self._read_on(size):
                if problem is not None:
                    what = "The text ends within a value" if open_ else problem.msg
                    self._fail(what, problem.pos)
                break
            size *= 2
            if len(self._text) > (limit := BUDGETS.import_row_bytes):
                large = f"{self._name} contains a value larger than {limit:,} bytes."
                raise TooLarge(f"{large} Split it into several records.")
        value = self._text[self._position : end]
        self._position = end
        return value

    def elements(self) -> Iterator[str]:
        """The JSON of each element of the array that begins here."""
        for _ in self.inside("[]"):
            yield self.value()

    def members(self) -> Iterator[str]:
        """The name of each member of the object that begins here; read its value next."""
        for _ in self.inside("{}"):
            if self.next() != '"':
                self._fail("Expecting a name in double quotes", self._position)
            name = JSONDecoder().decode(self.value())
            self._take(":")
            yield name

    def end(self) -> None:
        """Checks that nothing is left to read."""
        if self.next():
            advice = " If every line is a JSON object, use --format ndjson."
            self._fail("There is more text after the value", self._position, advice)

    def inside(self, brackets: str) -> Iterator[None]:
        """Goes through the array or the object that begins here: read each value, or member."""
        self._take(brackets[0])
        if self.next() != brackets[1]:
            yield
            while self.next() == ",":
                self._position += 1
                yield
        self._take(brackets[1])

    def _take(self, char: str) -> None:
        if self.next() != char:
            self._fail(f"Expecting {char!r}", self._position)
        self._position += 1

    def _read_on(self, size: int) -> bool:
        """Reads more, and forgets what was read before the current position."""
        try:
            chunk = self._source.repair.decoded(self._file.read(size))
        except Undecodable as error:
            raise InvalidRequest(f"{self._name} cannot be read. {error}.") from None
        if chunk:
            self._before += self._position
            self._text, self._position = self._text[self._position :] + chunk, 0
        return bool(chunk)

    def _fail(self, problem: str, position: int, advice: str = "") -> NoReturn:
        at = self._before + position
        raise InvalidRequest(f"{self._name} is not JSON: {problem} (character {at}).{advice}")
