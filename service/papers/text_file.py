"""Reads ranges of code points from UTF-8 files, at a cost proportional to the range.

An index maps code points to byte offsets. It is built in one pass and takes a few kilobytes.
"""

import codecs
import hashlib
import io
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from evidence.errors import InvalidRequest, Unavailable
from evidence.limits import CONTRACT
from evidence.work import Deadline
from service.lru import LruCache
from service.papers.snapshot_file import Mark, mark

STEP_CHARS = 8_192
BLOCK_BYTES = 262_144
INDEXES_CACHED = 256


@dataclass(frozen=True, slots=True)
class TextIndex:
    """`starts` has the byte offset of every 8,192nd code point, `total` counts code points.

    They are empty and 0 if the bytes are not UTF-8; the digest is always that of the bytes.
    """

    sha256: str
    total: int
    starts: "array[int]"
    is_text: bool


_indexes: LruCache[Mark, TextIndex] = LruCache(INDEXES_CACHED)


def identity(file: io.FileIO) -> Mark:
    """The mark of an open file, which changes with its bytes but not with its name."""
    return mark(os.fstat(file.fileno()))


def index(file: io.FileIO, deadline: Deadline) -> TextIndex:
    """The index of an open file, built once per identity; raises `TimedOut`."""
    return _indexes.once(identity(file), lambda: build(_blocks(file, deadline)))


def build(blocks: Iterable[bytes]) -> TextIndex:
    """Builds the index of a text from its blocks."""
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


VERSION_DIGITS = 12


@dataclass(frozen=True, slots=True)
class TextFile:
    """An open UTF-8 file with its index, and its identity when it was indexed.

    Close it, or use it in a `with`. `about` has the details for its errors. No character is
    converted: line endings, NUL and U+FEFF stay unchanged. Threads may read at the same time.
    """

    file: io.FileIO
    identity: Mark
    index: TextIndex
    about: Mapping[str, Any]

    def __enter__(self) -> "TextFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.file.close()

    @property
    def total(self) -> int:
        """Code points of the text."""
        return self.index.total

    @property
    def version(self) -> str:
        """The first digits of the SHA-256: windows of one version belong together."""
        return self.index.sha256[:VERSION_DIGITS]

    def read(self, start: int, end: int) -> str:
        """The code points from `start` up to `end`, both clipped to the text.

        Raises `Unavailable` (`asset_fetch_failed`) if the file was overwritten meanwhile.
        """
        start, end = max(0, start), min(end, self.total)
        if start >= end:
            return ""
        starts, first, last = self.index.starts, start // STEP_CHARS, -(-end // STEP_CHARS)
        before, begin = first * STEP_CHARS, starts[first]
        most = starts[last] - begin if last < len(starts) else 4 * STEP_CHARS * (last - first)
        try:
            text = os.pread(self.file.fileno(), most, begin).decode()[start - before : end - before]
        except UnicodeDecodeError as error:
            raise self._changed() from error
        if identity(self.file) != self.identity:
            raise self._changed()
        return text

    def window(self, offset: int, size: int) -> str:
        """`size` code points from `offset` on, fewer at the end of the text.

        Raises `InvalidRequest` (`invalid_window`) for an offset past the end.
        """
        self.check(offset)
        return self.read(offset, offset + size)

    def check(self, offset: int) -> None:
        """Raises `InvalidRequest` (`invalid_window`) unless `offset` is in the text or its end."""
        if not 0 <= offset <= self.total:
            raise InvalidRequest(
                f"The text has {self.total} characters, so offset_chars {offset} is out of range. "
                f"Use an offset_chars from 0 to {self.total}.",
                code="invalid_window",
                hint="A truncated answer gives the offset_chars at which the text continues.",
                param="offset_chars",
                total_chars=self.total,
                retry_arguments={"offset_chars": max(0, self.total - CONTRACT.window_chars)},
            )

    def _changed(self) -> Unavailable:
        return Unavailable(
            "The text changed while it was being read. Try again.",
            code="asset_fetch_failed",
            **self.about,
        )
