"""One client connection: the incoming request, the call to the application, and the answer.

The buffer only finds the end of a request. gunicorn parses and validates the request afterwards. A
malformed head goes to the parser at once, which refuses it.
"""

import fcntl
import re
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

from gunicorn import http
from gunicorn.http import wsgi
from gunicorn.http.errors import LimitRequestHeaders

from evidence.limits import BUDGETS, Budgets
from evidence.work import Deadline
from service.running.turns import TURN, Turn

_FRAMING: Final = re.compile(
    rb"\r\n(content-length|transfer-encoding|expect)[ \t]*:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)", re.I
)
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
_END_OF_HEAD: Final = b"\r\n\r\n"
#: gunicorn's limit for the line with the size of a chunk.
_CHUNK_LINE_BYTES: Final = 8_190
#: The framing of a chunked body may be as large as its content.
_FRAMING_SHARE: Final = 2


#: In a WSGI environment: when the request was complete, on the monotonic clock.
ARRIVAL: Final = "rung.arrival"


class BodyTooLarge(Exception):
    """The chunks of a body are so small that their framing exceeds the limit."""


class RequestBuffer:
    """The bytes received of one request.

    `ready` is true when the parser can decide without more bytes. `complete` is true when the whole
    body is there; otherwise the connection cannot be reused. `refusal` is the error to return if a
    limit was exceeded. `expects` is true when the client waits for `100 Continue`.
    """

    __slots__ = (
        *("data", "ready", "complete", "refusal", "expects", "body_start", "_deadline"),
        *("_bounds", "_line_bytes", "_end", "_chunk", "_decoded"),
    )

    def __init__(self, bounds: Budgets, line_bytes: int) -> None:
        self.data = bytearray()
        self.ready = self.complete = self.expects = False
        self.refusal: Exception | None = None
        self.body_start = 0  # 0 until the head is complete
        self._bounds, self._line_bytes = bounds, line_bytes
        self._deadline: Deadline | None = None
        self._end = 0  # for a body with a length
        self._chunk = 0  # where the size of the next chunk begins
        self._decoded = 0  # bytes of the chunks before it

    def feed(self, chunk: bytes) -> None:
        """Adds bytes. Call it only until the buffer is ready or refused."""
        previous_size = len(self.data)
        self.data += chunk
        if not self.body_start:
            self._find_head(previous_size)
        if self.body_start and not self.ready:
            if self._end:
                self.ready = self.complete = len(self.data) >= self._end
            else:
                self._skip_chunks()

    def end(self) -> None:
        """Handles the end of input: the parser decides about the received data."""
        self.ready = self.body_start > 0

    def body_deadline(self) -> Deadline:
        """The time after which a body with this much received is too slow."""
        bounds = self._bounds
        if self._deadline is None:
            self._deadline = Deadline.after(bounds.body_seconds)
        earned = (len(self.data) - self.body_start) / bounds.body_rate_bytes
        began = self._deadline.at - bounds.body_seconds
        return Deadline(min(self._deadline.at, began + bounds.body_grace_seconds + earned))

    def _find_head(self, previous_size: int) -> None:
        data = self.data
        end = data.find(_END_OF_HEAD, max(0, previous_size - 3))
        if end >= 0:
            self.body_start = end + len(_END_OF_HEAD)
            self._read_framing(bytes(data[: end + 2]))
            return
        # The parser refuses a bare LF and a long first line before the head is complete.
        fresh = data[previous_size - (data[previous_size - 1 : previous_size] == b"\r") :]
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
                # The application refuses a body that is too large once this much has arrived.
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
        """Sends as much as the socket accepts; returns whether everything was sent."""
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
    def memory_bytes(self) -> int:
        """Bytes of memory, including the sent part of pieces still held."""
        return sum(len(chunk.obj) for chunk in self._pieces)

    def clear(self) -> None:
        """Discards unsent data."""
        self._pieces.clear()
        self.size = 0

    def received(self) -> int:
        """Bytes that the client's system has acknowledged, or bytes sent if unknown."""
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
        *("pace", "pace_start", "discarded", "arrival", "turn"),
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
        self.arrival = 0.0  # of the request
        self.turn: Turn  # of the request
        self.pace: Deadline | None = None  # when the client's rate is measured next
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


def parse(worker: Any, connection: Connection) -> Any:
    """The parsed request; raises the errors of gunicorn's parser."""
    connection.keep = False
    if connection.parser is None:
        # Without a source: the parser gets the bytes from here, and cannot wait for more.
        connection.parser = http.get_parser(worker.cfg, (), connection.client)
    connection.parser.unreader.unread(bytes(connection.request.data))
    connection.request.data.clear()
    request = next(connection.parser)
    request._expected_100_continue = False  # answered while the body arrived
    return request


def begin(worker: Any, connection: Connection, request: Any) -> None:
    """Calls the application."""
    began = datetime.now()
    worker.cfg.pre_request(worker, request)
    response, environ = wsgi.create(
        request, connection.response, connection.client, connection.server, worker.cfg
    )
    environ["wsgi.multithread"], environ[ARRIVAL] = True, connection.arrival
    environ[TURN] = connection.turn
    worker.nr += 1
    if worker.nr >= worker.max_requests and worker.alive:
        worker.log.info("Autorestarting worker after current request.")
        worker.alive = False
    reusable = connection.request.complete and worker.cfg.keepalive and worker.max_keepalived > 0
    if not reusable or not worker.alive:
        response.force_close()
    connection.pace = None
    iterable = worker.wsgi(environ, response.start_response)
    connection.answer = Answer(request, response, environ, iterable, iter(iterable), began)


def write(worker: Any, connection: Connection) -> None:
    """Sends the answer until the client accepts no more. Call it again to continue."""
    answer = connection.answer
    assert answer is not None, "an answer was begun"
    response = answer.response
    try:
        for chunk in answer.pieces:
            response.write(chunk)
            if not connection.response.flush():
                return
        response.close()
        connection.response.flush()
    except OSError:
        end(worker, connection)
        raise
    except Exception:
        end(worker, connection)
        if not response.headers_sent:
            raise
        worker.log.exception("Error handling request")
        return
    end(worker, connection)
    connection.keep = not response.should_close() and bool(connection.parser.finish_body())


def end(worker: Any, connection: Connection) -> None:
    """Closes the answer: the application is done with it."""
    answer, connection.answer = connection.answer, None
    if answer is None:
        return
    passed = datetime.now() - answer.began
    try:
        worker.log.access(answer.response, answer.request, answer.environ, passed)
        if hasattr(answer.iterable, "close"):
            answer.iterable.close()
        worker.cfg.post_request(worker, answer.request, answer.environ, answer.response)
    except Exception:
        worker.log.exception("Error at the end of a request")
