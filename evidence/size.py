"""Measures text in encoded bytes and finds the longest prefix that fits a limit."""

import orjson

from evidence.text import escape

# A code point takes one byte at least and this many at most, written out as an escape.
MOST_BYTES = 10


def json_bytes(text: str) -> int:
    """UTF-8 bytes of a text as a JSON string, without its quotes."""
    return len(orjson.dumps(text)) - 2


def shown_bytes(text: str) -> int:
    """UTF-8 bytes of a text as model-visible text, control characters written out."""
    return len(escape(text)[0].encode())


def fit_json(text: str, room: int) -> str:
    """The longest beginning of `text` that takes at most `room` bytes inside JSON."""
    return text[: _longest(text, room, shown=False)]


def fit_both(text: str, *, shown: int, json: int) -> str:
    """The longest beginning that takes at most `shown` bytes as text and `json` bytes in JSON."""
    text = text[: _longest(text, shown, shown=True)]
    return fit_json(text, json)


def _longest(text: str, room: int, *, shown: bool) -> int:
    """Binary search: the size of a prefix never shrinks when it gets longer."""
    if room <= 0:
        return 0
    measure = shown_bytes if shown else json_bytes
    high = min(len(text), room)
    excess = measure(text[:high]) - room
    if excess <= 0:
        return high
    low, high = max(0, high - excess), high - -(-excess // MOST_BYTES)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return low
