"""Maps code points to byte offsets in a UTF-8 file, in one pass and a few kilobytes."""

import codecs
import hashlib
import io
import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from evidence.work import Deadline
from service.lru import LruCache

STEP_CHARS = 8_192
BLOCK_BYTES = 262_144
KEPT = 256


class Identity(NamedTuple):
    """Attributes of a file that change with its bytes, but not with its name."""

    device: int
    inode: int
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class TextIndex:
    """`starts` has the byte offset of every 8,192nd code point, `total` counts code points.

    Both are empty and 0 if the bytes are not UTF-8; the digest is always that of the bytes.
    """

    sha256: str
    total: int
    starts: "array[int]"
    is_text: bool


_indexes: LruCache[Identity, TextIndex] = LruCache(KEPT)


def identity(file: io.FileIO) -> Identity:
    status = os.fstat(file.fileno())
    return Identity(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def index(file: io.FileIO, deadline: Deadline) -> TextIndex:
    """The index of an open file, made once for each identity; raises `TimedOut`."""
    return _indexes.once(identity(file), lambda: build(_blocks(file, deadline)))


def build(blocks: Iterable[bytes]) -> TextIndex:
    """The index of a text that comes in blocks."""
    digest, decoder = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")()
    starts, chars, size = array("I", [0]), 0, 0
    is_text = True
    for block, last in chain(((block, False) for block in blocks), [(b"", True)]):
        digest.update(block)
        try:
            text = decoder.decode(block, last) if is_text else ""
        except UnicodeDecodeError:
            is_text, text = False, ""
        while text:
            step = text[: STEP_CHARS - chars % STEP_CHARS]
            text = text[len(step) :]
            chars += len(step)
            size += len(step) if step.isascii() else len(step.encode())
            if chars % STEP_CHARS == 0:
                starts.append(size)
    if not is_text:
        return TextIndex(digest.hexdigest(), 0, array("I"), False)
    return TextIndex(digest.hexdigest(), chars, starts, True)


def _blocks(file: io.FileIO, deadline: Deadline) -> Iterator[bytes]:
    offset = 0
    while block := os.pread(file.fileno(), BLOCK_BYTES, offset):
        deadline.check("reading a text")
        yield block
        offset += len(block)
