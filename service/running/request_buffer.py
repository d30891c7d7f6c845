"""Collects the bytes of one request until all of them are there.

This only finds the end of a request. gunicorn's parser reads and validates it afterwards. A head
that is malformed goes to the parser at once, which refuses it.
"""

import re
from typing import Final

from gunicorn.http.errors import LimitRequestHeaders

from evidence.limits import Budgets
from evidence.work import Deadline

_FRAMING: Final = re.compile(
    rb"\r\n(content-length|transfer-encoding|expect)[ \t]*:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)", re.I
)
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
_END_OF_HEAD: Final = b"\r\n\r\n"
#: gunicorn's limit of the line with the size of a chunk.
_CHUNK_LINE_BYTES: Final = 8_190
#: The framing of a chunked body may be as large as its content.
_FRAMING_SHARE: Final = 2


class BodyTooLarge(Exception):
    """The chunks of a body are so small that their framing passes the bound."""


class RequestBuffer:
    """The bytes received of one request.

    `ready` is true when the parser can decide without more bytes. `complete` is true when the whole
    body is there; otherwise the connection cannot be reused. `refusal` is the error to answer with
    if a bound was passed. `expects` is true when the client waits for `100 Continue`.
    """

    __slots__ = (
        *("data", "ready", "complete", "refusal", "expects", "body_start", "_deadline"),
        *("_bounds", "_line_bytes", "_end", "_chunk", "_decoded"),
    )

    def __init__(self, bounds: Budgets, line_bytes: int) -> None:
        self.data = bytearray()
        self.ready = self.complete = self.expects = False
        self.refusal: Exception | None = None
        self.body_start = 0  # 0 until the head is there
        self._bounds, self._line_bytes = bounds, line_bytes
        self._deadline: Deadline | None = None
        self._end = 0  # of a body with a length
        self._chunk = 0  # where the size of the next chunk begins
        self._decoded = 0  # bytes of the chunks before it

    def feed(self, piece: bytes) -> None:
        """Adds bytes. Call it only until the buffer is ready or refused."""
        seen = len(self.data)
        self.data += piece
        if not self.body_start:
            self._find_head(seen)
        if self.body_start and not self.ready:
            if self._end:
                self.ready = self.complete = len(self.data) >= self._end
            else:
                self._skip_chunks()

    def end(self) -> None:
        """Handles the end of input: the parser decides about the received data."""
        self.ready = self.body_start > 0

    def body_deadline(self) -> Deadline:
        """The time at which a body received this far is too slow."""
        bounds = self._bounds
        if self._deadline is None:
            self._deadline = Deadline.after(bounds.body_seconds)
        earned = (len(self.data) - self.body_start) / bounds.body_rate_bytes
        began = self._deadline.at - bounds.body_seconds
        return Deadline(min(self._deadline.at, began + bounds.body_grace_seconds + earned))

    def _find_head(self, seen: int) -> None:
        data = self.data
        end = data.find(_END_OF_HEAD, max(0, seen - 3))
        if end >= 0:
            self.body_start = end + len(_END_OF_HEAD)
            self._read_framing(bytes(data[: end + 2]))
            return
        # The parser refuses a bare LF and a long first line before the head is complete.
        fresh = data[seen - 1 if seen and data[seen - 1] == 0x0D else seen :]
        most = self._line_bytes + 4
        if fresh.count(b"\n") != fresh.count(b"\r\n"):
            self.ready = True
        elif len(data) > most and data.find(b"\r\n", 2, most) < 0:
            self.ready = True
        elif len(data) > self._bounds.head_bytes:
            self.refusal = LimitRequestHeaders("head")

    def _read_framing(self, head: bytes) -> None:
        """Determines how the end of the body is announced."""
        fields = [(match[1].lower(), match[2]) for match in _FRAMING.finditer(head)]
        if not fields:
            self.ready = self.complete = True
            return
        framing = dict(fields)
        expected = framing.pop(b"expect", None)
        odd = expected is not None and expected.lower() != b"100-continue"
        coding, length = framing.get(b"transfer-encoding"), framing.get(b"content-length")
        odd = odd or len(fields) != len(framing) + (expected is not None)
        if odd or (coding is not None and length is not None):
            self.ready = True
        elif coding is not None:
            self.ready = coding.lower() != b"chunked"
            self._chunk = self.body_start
        elif length is not None and not _LENGTH.fullmatch(length):
            self.ready = True
        else:
            size = int(length or 0)
            self.complete = not size
            # A body over the limit is refused unread.
            self.ready = not size or size > self._bounds.body_bytes
            self._end = self.body_start + size
        self.expects = expected is not None and not self.ready and b" HTTP/1.1\r\n" in head

    def _skip_chunks(self) -> None:
        """Skips the received chunks; ready at the end, or at a malformed one."""
        data, most = self.data, self._bounds.body_bytes
        while not self.ready:
            line_end = data.find(b"\r\n", self._chunk)
            if line_end < 0:
                self.ready = len(data) - self._chunk > _CHUNK_LINE_BYTES
                break
            size_text = data[self._chunk : line_end].partition(b";")[0].strip()
            if not _CHUNK_SIZE.fullmatch(size_text):
                self.ready = True
                break
            size, start = int(size_text, 16), line_end + 2
            if not size:
                self._find_end_of_trailers(start)
                break
            after = start + size + 2
            if len(data) < after:
                # The application answers a body that is too large, once that much is there.
                self.ready = self._decoded + len(data) - start > most
                break
            self._decoded += size
            self._chunk = after
            self.ready = self._decoded > most
        if not self.ready and len(data) - self.body_start > most * _FRAMING_SHARE:
            self.refusal = BodyTooLarge()

    def _find_end_of_trailers(self, start: int) -> None:
        none = self.data[start : start + 2] == b"\r\n"
        if none or self.data.find(_END_OF_HEAD, start) >= 0:
            self.ready = self.complete = True
        else:
            self.ready = len(self.data) - start > self._bounds.head_bytes
