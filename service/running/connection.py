"""One connection of a client: the request that is arriving and the answer that is being sent."""

import fcntl
import socket
import struct
import sys
import termios
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.running.request_buffer import RequestBuffer

#: Pieces per system call; systems accept at least 16, Linux 1,024.
_PIECES: Final = 16
#: SO_LINGER with no time: the system discards what was not sent.
_DISCARD: Final = struct.pack("ii", 1, 0)
#: Unknown on some systems.
_QUEUED: Final[int | None] = getattr(socket, "TCP_NOTSENT_LOWAT", None)


class ResponseBuffer:
    """The bytes of an answer that the client has not read yet.

    gunicorn writes into it as into a socket; writing never waits.
    """

    __slots__ = ("_sock", "_pieces", "_sent", "size")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._pieces: deque[Any] = deque()  # memoryviews, which keep their object
        self._sent = 0
        self.size = 0

    def sendall(self, data: bytes) -> None:
        """Adds bytes. `flush` sends them."""
        if data:
            self._pieces.append(memoryview(data))
            self.size += len(data)

    def flush(self) -> bool:
        """Sends as much as the socket accepts now; returns whether that was everything."""
        pieces = self._pieces
        while pieces:
            try:
                sent = self._sock.sendmsg(islice(pieces, _PIECES))
            except (BlockingIOError, InterruptedError):
                return False
            self._sent += sent
            self.size -= sent
            while sent:
                first = pieces.popleft()
                if sent < len(first):
                    pieces.appendleft(first[sent:])
                sent -= min(sent, len(first))
        return True

    @property
    def held(self) -> int:
        """Bytes of memory, including the sent part of pieces still held."""
        return sum(len(piece.obj) for piece in self._pieces)

    def clear(self) -> None:
        """Discards unsent data."""
        self._pieces.clear()
        self.size = 0

    def received(self) -> int:
        """Bytes that the client's system has acknowledged; those it was sent, if unknown."""
        if sys.platform != "linux":
            return self._sent
        queued = fcntl.ioctl(self._sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
        return self._sent - int.from_bytes(queued, sys.byteorder)


@dataclass(slots=True)
class Answer:
    """A WSGI answer, possibly half sent."""

    request: Any
    response: Any
    environ: dict[str, Any]
    iterable: Iterable[bytes]
    pieces: Iterator[bytes]
    began: datetime


class Connection:
    """A connection, and what the worker waits for: `on_ready` runs on an event, `on_late` later.

    `received` and `unsent` are the bytes that count towards the bounds of the worker. `keep` is
    True if another request may follow the answer.
    """

    __slots__ = (
        *("sock", "client", "server", "request", "response", "parser", "answer", "keep"),
        *("deadline", "on_ready", "on_late", "polled", "received", "unsent"),
        *("pace", "pace_start", "discarded"),
    )

    def __init__(self, sock: socket.socket, client: Any, server: Any) -> None:
        sock.setblocking(False)
        if _QUEUED is not None and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, _QUEUED, BUDGETS.queued_bytes)
        self.sock, self.client, self.server = sock, client, server
        self.request: RequestBuffer
        self.response = ResponseBuffer(sock)
        self.parser: Any = None
        self.answer: Answer | None = None
        self.keep = self.polled = False
        self.deadline: Deadline
        self.on_ready: Callable[["Connection"], None]
        self.on_late: Callable[["Connection"], None]
        self.received = self.unsent = self.discarded = 0
        self.pace: Deadline | None = None  # when the rate of the client is measured next
        self.pace_start = 0  # bytes it had received at the start of this interval

    @property
    def closed(self) -> bool:
        """True if `close` was called."""
        return self.sock.fileno() < 0

    def close(self, *, discard: bool = False) -> None:
        """Closes the socket. `discard` drops unsent data and resets the connection."""
        try:
            if discard:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)
            self.sock.close()
        except OSError:
            pass
