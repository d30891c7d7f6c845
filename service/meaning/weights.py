"""Reads the downloaded weights file: a tokenizer and a 4-bit BERT encoder."""

import struct
from pathlib import Path
from typing import Any, Final

import numpy as np

_BLOCK: Final = 32  # weights that share a scale
_BLOCK_BYTES: Final = 2 + _BLOCK // 2  # the scale in 16 bits, then 4 bits a weight


class Weights:
    """The content of a weights file, whose checksum the caller has verified.

    `special` has the ids of beginning, end, padding and unknown, `characters` what a tokenizer
    replaces before it splits a text into `pieces`.
    """

    def __init__(self, path: Path) -> None:
        self._content = path.read_bytes()
        self._offset = 8
        sizes = self._take("7i")
        self.hidden, self.layers, self.heads, self.inner, self.vocabulary, self.positions, _ = sizes
        self.epsilon, _ = self._take("fi")
        count, *self.special = self._take("5i")
        (length,) = self._take("Q")
        starts = self._take(f"{count + 1}I")
        self.scores = self._take(f"{count}f")
        (text,) = self._take(f"{length}s")
        self.pieces = [text[start:end].decode() for start, end in zip(starts, starts[1:])]
        count, _ = self._take("iI")
        self.characters = dict(self._character() for _ in range(count))
        (count,) = self._take("i")
        self._offsets = dict(self._tensor() for _ in range(count))

    def _take(self, layout: str) -> tuple[Any, ...]:
        """The next values of the file."""
        self._offset += struct.calcsize(f"<{layout}")
        start = self._offset - struct.calcsize(f"<{layout}")
        return struct.unpack_from(f"<{layout}", self._content, start)

    def _character(self) -> tuple[int, str]:
        character, length = self._take("IB")
        return character, "".join(map(chr, self._take(f"{length}I")))

    def _tensor(self) -> tuple[str, int]:
        (length,) = self._take("H")
        name, _, _, offset, _ = self._take(f"{length}sBIQQ")
        return name.decode(), offset

    def vector(self, name: str, count: int) -> Any:
        """A tensor of 32-bit floats."""
        return np.frombuffer(self._content, "<f4", count, self._offsets[name])

    def blocks(self, name: str, rows: int, columns: int) -> Any:
        """The bytes of a 4-bit matrix, a row for each of its rows."""
        size = rows * row_bytes(columns)
        return np.frombuffer(self._content, np.uint8, size, self._offsets[name]).reshape(rows, -1)


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
