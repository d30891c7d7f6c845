"""The store's input: rows, their keys, counts, and a check of how deeply rows are nested."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from evidence.names import Refused, check_record_id

NESTING = 100
REPORTED_REFUSALS = 20


class Row(NamedTuple):
    """A record to put, or to delete when `deleted`.

    `key` may be omitted if the manifest names a primary key, `stream` if the import names one,
    `emitted_at` if it is now. `former` is where older versions of its format stored the record:
    the stream, the key, and members that it has there. `digest` is that of the bytes from which it
    was parsed; see `importing.unchanged`.
    """

    data: dict[str, Any]
    key: Any = None
    emitted_at: str | None = None
    stream: str | None = None
    deleted: bool = False
    former: tuple[str, str, dict[str, Any]] | None = None
    digest: int | None = None


@dataclass(slots=True)
class Counts:
    """The outcome of the rows of an import.

    `repeated` rows were replaced by a later one in the same batch.
    """

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    repeated: int = 0
    refused: int = 0
    refusals: list[tuple[int, str]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        taken = self.new + self.changed + self.unchanged + self.deleted + self.repeated
        return taken + self.refused

    def refuse(self, line: int, message: str) -> None:
        """Counts a refused row; the first 20 are kept with their lines."""
        self.refused += 1
        if len(self.refusals) < REPORTED_REFUSALS:
            self.refusals.append((line, message))


def record_key(row: Row, primary_key: tuple[str, ...]) -> str:
    """The id of a row in the store: its own key, or its primary key, or else a hash of the row.

    A key of several fields is a minified JSON array of strings.
    """
    if row.key is not None:
        return check_record_id(_join_key(row.key if isinstance(row.key, list) else [row.key]))
    if primary_key:
        if len(primary_key) == 1 and isinstance(only := row.data.get(primary_key[0]), str):
            return check_record_id(only)
        missing = [name for name in primary_key if row.data.get(name) is None]
        if missing:
            raise Refused(f"The primary key field {missing[0]!r} is missing or null.")
        return check_record_id(_join_key([row.data[name] for name in primary_key]))
    if row.deleted:
        raise Refused('A deletion needs a "key": this stream has no primary key.')
    return content_key(row.data)


def content_key(data: dict[str, Any]) -> str:
    """The hash of a record's content."""
    content = orjson.dumps(data, default=_base64, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(content).hexdigest()


def _base64(value: Any) -> str:
    """The text of bytes, as JSON has them."""
    if not isinstance(value, bytes):
        raise TypeError
    return base64.b64encode(value).decode()


def check_nesting(data: dict[str, Any]) -> bool:
    """Whether any value is an object or an array.

    Refuses values nested so deeply that they could not be written out again.
    """
    first: list[Any] = [value for value in data.values() if isinstance(value, (dict, list))]
    level = first
    for _ in range(NESTING):
        if not level:
            return bool(first)
        level = [child for value in level for child in children(value)]
    raise Refused(f"A value is nested more than {NESTING} levels deep; flatten it.")


def children(value: dict[str, Any] | list[Any]) -> Iterator[dict[str, Any] | list[Any]]:
    """The objects and arrays directly inside an object or array."""
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, (dict, list)):
            yield child


def _join_key(parts: list[Any]) -> str:
    words = []
    for part in parts:
        if isinstance(part, bool) or not isinstance(part, (str, int, float)):
            raise Refused("A key must be a string, a number, or a list of strings and numbers.")
        words.append(part if isinstance(part, str) else orjson.dumps(part).decode())
    return words[0] if len(words) == 1 else orjson.dumps(words).decode()
