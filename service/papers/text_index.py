"""Maps code points to byte offsets in a UTF-8 file, in one pass and a few kilobytes."""

import codecs
import hashlib
import io
import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from evidence.work import Deadline
from service.lru import LruCache

STEP_CHARS = 8_192
BLOCK_BYTES = 262_144
KEPT = 256


class Identity(NamedTuple):
    """What stays the same of a file as long as its bytes do, whatever it is called."""

    device: int
    inode: int
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class TextIndex:
    """`starts` has the byte offset of every 8,192nd code point, `total` counts code points.

    Both are 0 and empty where the bytes are no UTF-8; the digest is that of the bytes in any case.
    """

    sha256: str
    total: int
    starts: "array[int]"
    is_text: bool


_indexes: LruCache[Identity, TextIndex] = LruCache(KEPT)


def identity(file: io.FileIO) -> Identity:
    found = os.fstat(file.fileno())
    return Identity(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def index(file: io.FileIO, deadline: Deadline) -> TextIndex:
    """The index of an open file, made once for each identity; raises `TimedOut`."""
    return _indexes.once(identity(file), lambda: build(_blocks(file, deadline)))


def build(blocks: Iterable[bytes]) -> TextIndex:
    """The index of a text that comes in blocks."""
    digest = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")()
    places = _Places()
    is_text = True
    for block in blocks:
        digest.update(block)
        if is_text:
            is_text = places.take(decoder, block)
    if not is_text or not places.take(decoder, b"", final=True):
        return TextIndex(digest.hexdigest(), 0, array("I"), False)
    return TextIndex(digest.hexdigest(), places.chars, places.starts, True)


def _blocks(file: io.FileIO, deadline: Deadline) -> Iterator[bytes]:
    offset = 0
    while block := os.pread(file.fileno(), BLOCK_BYTES, offset):
        deadline.check("reading a text")
        yield block
        offset += len(block)


class _Places:
    """Counts code points and records the byte offset of every step."""

    def __init__(self) -> None:
        self.chars = 0
        self.starts = array("I", [0])
        self._bytes = 0

    def take(
        self, decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False
    ) -> bool:
        """Counts the code points of a block; False if it is not UTF-8."""
        try:
            text = decoder.decode(block, final)
        except UnicodeDecodeError:
            return False
        done = 0
        while (step := STEP_CHARS - self.chars % STEP_CHARS) <= len(text) - done:
            self._count(text[done : done + step])
            self.starts.append(self._bytes)
            done += step
        self._count(text[done:])
        return True

    def _count(self, text: str) -> None:
        self.chars += len(text)
        self._bytes += len(text) if text.isascii() else len(text.encode())
