"""Large values: which values are large, and how chunk rows store them.

A string over 64 KiB of UTF-8, or a nested value with such canonical JSON, is stored in chunk rows
of 16,384 code points. `document.big` has their location: {field: [first, chunks, chars, bytes,
type]}.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from evidence.limits import CONTRACT
from evidence.work import portions

Place = tuple[int, int, int, int, str]


@dataclass(frozen=True, slots=True)
class LargeValue:
    """A value to cut into chunks: its text, UTF-8 size and JSON type."""

    text: str
    size_bytes: int
    type: str

    @property
    def chunks(self) -> int:
        return -(-len(self.text) // CONTRACT.chunk_chars)

    def place(self, first: int) -> Place:
        """The value's entry in `document.big` if its first chunk has the id `first`."""
        return first, self.chunks, len(self.text), self.size_bytes, self.type

    def is_at(self, location: Place, read: Callable[[Place], str]) -> bool:
        """Whether this value equals the one stored at a place; `read` returns the text there."""
        return tuple(location[1:]) == self.place(0)[1:] and self.text == read(location)

    def pieces(self) -> Iterator[str]:
        """The texts of the chunks."""
        return portions(self.text, CONTRACT.chunk_chars)


def find_large(data: dict[str, Any], json: bytes) -> dict[str, LargeValue]:
    """The large values among the fields of a record, whose whole JSON is `json`."""
    if len(json) <= CONTRACT.inline_bytes:
        return {}
    measured = ((name, _measure(value)) for name, value in data.items())
    return {name: large for name, large in measured if large is not None}


def _measure(value: Any) -> LargeValue | None:
    if isinstance(value, str):
        if len(value) * 4 <= CONTRACT.inline_bytes:
            return None
        size = len(value) if value.isascii() else len(value.encode())
        return LargeValue(value, size, "string") if size > CONTRACT.inline_bytes else None
    if not isinstance(value, (dict, list)):
        return None
    json = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if len(json) <= CONTRACT.inline_bytes:
        return None
    return LargeValue(json.decode(), len(json), "object" if isinstance(value, dict) else "array")
