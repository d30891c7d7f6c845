"""Reads ranges of code points from text files, at a cost proportional to the range."""

import io
import os
from collections.abc import Mapping
from typing import Any

from evidence.errors import InvalidRequest, Unavailable
from evidence.limits import CONTRACT
from service.papers.text_index import STEP_CHARS, Identity, TextIndex, identity

VERSION_DIGITS = 12


class TextFile:
    """An open UTF-8 file with its index, and its identity when it was indexed.

    Close it, or use it in a `with`. `about` are the details of its errors. No character is
    converted: line ends, NUL and U+FEFF stay as they are. Threads may read at the same time.
    """

    def __init__(
        self, file: io.FileIO, indexed: Identity, index: TextIndex, about: Mapping[str, Any]
    ) -> None:
        self.identity = indexed
        self.index = index
        self._file = file
        self._about = about

    def __enter__(self) -> "TextFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

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

        Raises `Unavailable` (`asset_fetch_failed`) where the file was overwritten meanwhile.
        """
        start, end = max(0, start), min(end, self.total)
        if start >= end:
            return ""
        first = start // STEP_CHARS
        before = first * STEP_CHARS
        try:
            text = self._steps(first, -(-end // STEP_CHARS)).decode()[start - before : end - before]
        except UnicodeDecodeError as error:
            raise self._changed() from error
        if identity(self._file) != self.identity:
            raise self._changed()
        return text

    def window(self, offset: int, size: int) -> str:
        """`size` code points from `offset` on, fewer at the end of the text.

        Raises `InvalidRequest` (`invalid_window`) for an offset behind the end.
        """
        self.check(offset)
        return self.read(offset, offset + size)

    def check(self, offset: int) -> None:
        """Raises `InvalidRequest` (`invalid_window`) unless `offset` is in the text or its end."""
        if not 0 <= offset <= self.total:
            raise InvalidRequest(
                f"The text has {self.total} characters, and offset_chars {offset} is outside "
                f"it. Use an offset_chars from 0 to {self.total}.",
                code="invalid_window",
                hint="Every answer has the offset_chars where the text continues.",
                param="offset_chars",
                total_chars=self.total,
                retry_arguments={"offset_chars": max(0, self.total - CONTRACT.window_chars)},
            )

    def _steps(self, first: int, last: int) -> bytes:
        """The bytes of the steps from `first` up to `last`."""
        starts = self.index.starts
        begin = starts[first]
        if last < len(starts):
            return os.pread(self._file.fileno(), starts[last] - begin, begin)
        return os.pread(self._file.fileno(), 4 * STEP_CHARS * (last - first), begin)

    def _changed(self) -> Unavailable:
        return Unavailable(
            "The text changed while it was read. Try again.",
            code="asset_fetch_failed",
            **self._about,
        )
