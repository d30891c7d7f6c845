"""Reads the weights file of the package: a tokenizer, and a BERT encoder in 4 bits."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

_BLOCK: Final = 32  # weights that share a scale
_BLOCK_BYTES: Final = 2 + _BLOCK // 2  # the scale in 16 bits, then 4 bits a weight


@dataclass(frozen=True, slots=True)
class Weights:
    """The content of the file. `special` has the ids of beginning, end, padding and unknown."""

    content: bytes
    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    epsilon: float
    special: tuple[int, int, int, int]
    pieces: list[str]
    scores: list[float]
    characters: dict[int, str]  #: what a tokenizer replaces
    offsets: dict[str, int]

    def vector(self, name: str, count: int) -> Any:
        """A tensor of 32-bit floats."""
        return np.frombuffer(self.content, "<f4", count, self.offsets[name])

    def blocks(self, name: str, rows: int, columns: int) -> Any:
        """The bytes of a 4-bit matrix, a row for each of its rows."""
        width = row_bytes(columns)
        flat = np.frombuffer(self.content, np.uint8, rows * width, self.offsets[name])
        return flat.reshape(rows, width)

    def matrix(self, name: str, rows: int, columns: int) -> Any:
        """A 4-bit matrix as 32-bit floats."""
        return unpacked(self.blocks(name, rows, columns))


def row_bytes(columns: int) -> int:
    """The bytes of a row of so many weights."""
    return columns // _BLOCK * _BLOCK_BYTES


def unpacked(rows: Any) -> Any:
    """Rows of 4-bit blocks as 32-bit floats."""
    blocks = rows.reshape(len(rows), -1, _BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :, :2]).view("<f2").astype(np.float32)
    packed = blocks[:, :, 2:]
    signed = np.concatenate([packed & 15, packed >> 4], axis=2).astype(np.float32) - 8
    return (signed * scales).reshape(len(rows), -1)


class _Reader:
    """Reads values one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content, self._offset = content, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._content, self._offset)
        self._offset += struct.calcsize(f"<{layout}")
        return values

    def text(self, length: int) -> bytes:
        (content,) = self.take(f"{length}s")
        return bytes(content)


def read(path: Path) -> Weights:
    """The content of a weights file, whose checksum the caller has verified."""
    content = path.read_bytes()
    reader = _Reader(content)
    reader.take("4sI")
    hidden, layers, heads, inner, vocabulary, positions, _ = reader.take("7i")
    epsilon, _ = reader.take("fi")
    count, *special = reader.take("5i")
    (length,) = reader.take("Q")
    starts = reader.take(f"{count + 1}I")
    scores = reader.take(f"{count}f")
    spelling = reader.text(length)
    pieces = [spelling[start:end].decode() for start, end in zip(starts, starts[1:])]
    characters = _characters(reader)
    (tensors,) = reader.take("i")
    offsets = dict(_tensor(reader) for _ in range(tensors))
    return Weights(
        *(content, hidden, layers, heads, inner, vocabulary, positions, epsilon),
        *((special[0], special[1], special[2], special[3]), pieces, list(scores)),
        *(characters, offsets),
    )


def _characters(reader: _Reader) -> dict[int, str]:
    count, _ = reader.take("iI")
    table = {}
    for _ in range(count):
        character, length = reader.take("IB")
        table[character] = "".join(map(chr, reader.take(f"{length}I")))
    return table


def _tensor(reader: _Reader) -> tuple[str, int]:
    (length,) = reader.take("H")
    name = reader.text(length).decode()
    _, _, offset, _ = reader.take("BIQQ")
    return name, offset
