"""The frames of limited size that the parsing process sends to the import.

A frame is the length of a JSON object, the object, and the bytes whose lengths are in its member
`blobs`. Decoding one executes nothing. `State` is memory that both processes share: it shows what
the parser was doing when it was killed.
"""

import ctypes
import mmap
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO, Final

import orjson

from evidence.limits import BUDGETS
from service.importing.json_values import Numeral
from service.importing.unchanged import Unchanged
from evidence.names import Refused
from service.records.intake import Row, check_nesting

LENGTH: Final = struct.Struct(">Q")
#: Rows are sent together, up to this size.
BATCH_BYTES: Final = 65_536
#: The beginnings of strings that replace values that JSON does not have. No text begins with NUL.
_NUMERAL, _BYTES = "\0n", "\0b"
#: The types whose subclasses are sent as these.
_BASES: Final[tuple[Any, ...]] = (str, int, float, dict, list, tuple)
#: Row number, line, and a message or the members of a row.
Encoded = list[Any]


class State(ctypes.Structure):
    """What the parser is doing. `parsing` is 0 while it looks for the next record.

    `waiting` is 1 while it waits for input. `position` is its place in the file. The step that it
    is at may take so many `seconds` of CPU time, and `memory` in bytes.
    """

    record: int
    line: int
    parsing: int
    waiting: int
    position: int
    seconds: int
    memory: int

    @classmethod
    def mapped(cls, file: int) -> "State":
        """The state in a file of its size."""
        return cls.from_buffer(mmap.mmap(file, ctypes.sizeof(cls)))


State._fields_ = [(name, ctypes.c_int64) for name in State.__annotations__]


def send(file: BinaryIO, content: bytes, blobs: Sequence[bytes] = ()) -> None:
    """Writes a frame."""
    file.write(LENGTH.pack(len(content)) + content)
    for blob in blobs:
        file.write(blob)
    file.flush()


def encode(row: Row | Unchanged | str, blobs: list[bytes]) -> bytes:
    """The JSON of a row or a message; bytes in it are added to `blobs`.

    Raises Refused for a row with values that JSON does not have.
    """
    if isinstance(row, str):
        return orjson.dumps(row.encode("utf-8", "replace").decode())
    if isinstance(row, Unchanged):
        return orjson.dumps({"unchanged": row.digests})
    marked, before = False, len(blobs)

    def plain(value: Any) -> Any:
        nonlocal marked
        if isinstance(value, (bytes, Numeral)):
            marked = True
            if isinstance(value, Numeral):
                return f"{_NUMERAL}{value}"
            blobs.append(value)
            return f"{_BYTES}{len(blobs) - 1}"
        base = next((kind for kind in _BASES if isinstance(value, kind)), None)
        if base is None:
            raise TypeError(f"it has a {type(value).__name__}")
        return base(value)

    try:
        text = orjson.dumps([*row], default=plain, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except (TypeError, RecursionError) as error:
        del blobs[before:]
        check_nesting(row.data)
        raise Refused(f"This record is not JSON: {error.__cause__ or error}.") from None
    if len(text) > (most := BUDGETS.import_row_bytes):
        del blobs[before:]
        raise Refused(f"This record is larger than {most:,} bytes. Split it.")
    return text[:-1] + b",1]" if marked else text


def decode(content: Any, blobs: Sequence[bytes]) -> Row | Unchanged | str:
    """A row, an unchanged record or a message; raises ValueError for anything else."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return Unchanged([int(digest) for digest in content["unchanged"]], 0)
    data, key, emitted_at, stream, deleted, former, digest, *marked = content
    if not isinstance(digest, (int, type(None))):
        raise ValueError("it is not a row")
    if not isinstance(data, dict) or not isinstance(deleted, bool):
        raise ValueError("it is not a row")
    if not isinstance(stream, (str, type(None))) or not isinstance(emitted_at, (str, type(None))):
        raise ValueError("it is not a row")
    if former is not None:
        *address, same = former
        if len(address) != 2 or not all(isinstance(part, str) for part in address):
            raise ValueError("it is not a row")
        former = (*address, dict(same))
    data = _restored(data, blobs) if marked else data
    return Row(data, key, emitted_at, stream, deleted, former, digest)


def _restored(value: Any, blobs: Sequence[bytes]) -> Any:
    """A value with the values that JSON does not have."""
    if isinstance(value, dict):
        return {name: _restored(item, blobs) for name, item in value.items()}
    if isinstance(value, list):
        return [_restored(item, blobs) for item in value]
    if isinstance(value, str) and value.startswith(_BYTES):
        return blobs[int(value.removeprefix(_BYTES))]
    if isinstance(value, str) and value.startswith(_NUMERAL):
        return Numeral(value.removeprefix(_NUMERAL))
    return value
