"""JSON members of values, and JSON from elsewhere within a bound.

The bound is on its values and levels, counted before parsing. A value of two bytes takes a
hundred in memory, so a bound on bytes alone is not enough.
"""

from itertools import accumulate
from typing import Any

import orjson

from evidence.limits import BUDGETS

#: Everything but quotes and the marks between values.
_OTHERS = bytes(set(range(256)) - set(b'",:[]{}'))
#: Brackets as steps: one level down, one level up.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


class TooManyValues(ValueError):
    """JSON of more values than are parsed; the message reports how many."""


class TooDeeplyNested(ValueError):
    """JSON in more levels than can be written out again; the message reports how many."""


def parse(raw: bytes) -> Any:
    """The value of a JSON text.

    Raises `TooManyValues` and `TooDeeplyNested`, before any of it is parsed, and
    `orjson.JSONDecodeError`: each is a `ValueError`.
    """
    _look_over(raw)
    return orjson.loads(raw)


def _look_over(raw: bytes) -> None:
    """Counts marks outside strings and follows the levels, a piece at a time."""
    marks = level = 0
    inside, held = False, b""
    for start in range(0, len(raw), BUDGETS.piece_bytes):
        piece = held + raw[start : start + BUDGETS.piece_bytes]
        # A last backslash waits for what it escapes.
        held = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        piece = piece[: len(piece) - len(held)].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.translate(None, _OTHERS).split(b'"')
        found = b"".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0
        marks += len(found)
        if marks > BUDGETS.json_marks:
            raise TooManyValues(f"holds more than {BUDGETS.json_marks} brackets, commas and colons")
        level = _level_after(found, level)


def _level_after(marks: bytes, level: int) -> int:
    """The level after some marks; raises `TooDeeplyNested` if it is too deep on the way."""
    steps = marks.translate(_STEPS, b",:")
    downs = steps.count(b"\x01")
    if level + downs > BUDGETS.json_levels:
        if max(accumulate(memoryview(steps).cast("b"), initial=level)) > BUDGETS.json_levels:
            raise TooDeeplyNested(f"is nested more than {BUDGETS.json_levels} levels deep")
    return level + 2 * downs - len(steps)


def known(members: dict[str, Any]) -> dict[str, Any]:
    """The members that are not None, in their order."""
    return {name: value for name, value in members.items() if value is not None}


def members(found: object, *names: str) -> dict[str, Any]:
    """The attributes of a value that have the same names in JSON."""
    return {name: getattr(found, name) for name in names}


def chars(found: object, *names: str) -> dict[str, Any]:
    """Offsets and sizes of a value, as JSON names them: `{"start_chars": found.start}`."""
    return {f"{name}_chars": getattr(found, name) for name in names}
