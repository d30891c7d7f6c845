"""Clients that hold a connection: they send half a request, or do not read their answer."""

import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from time import monotonic
from urllib.parse import urlsplit

from evidence.limits import BUDGETS
from tests.helpers import worlds
from tests.helpers.operated import Operated

#: Bounds of a worker for short tests; see `impatient`.
BOUNDS = replace(
    BUDGETS,
    head_seconds=1.0,
    body_seconds=4.0,
    body_grace_seconds=1.0,
    answer_window_seconds=1.0,
    idle_seconds=2.0,
    received_bytes=4_194_304,
    unsent_bytes=4_194_304,
)
#: More than the system buffers on both sides.
BLOB_BYTES = 12_582_912
CONTENT = bytes(range(256)) * (BLOB_BYTES // 256)
BLOB = "/v1/blobs/big?connection_id=files"
SMALL_WINDOW = 4_096
HEAD = b"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"

#: What each kind of client sends first; the one that never reads requests the blob.
KINDS: dict[str, bytes] = {
    "silent": b"",
    "half a head": HEAD[:40],
    "half a body": HEAD + b'Content-Length: 900\r\n\r\n{"q": "a',
    "half a chunk": HEAD + b'Transfer-Encoding: chunked\r\n\r\n80\r\n{"q": "a',
    "dripping a body": HEAD + b"Content-Length: 900\r\n\r\n{",
    "never reading": b"",
    "idle": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


def world() -> worlds.World:
    """A world with one blob larger than the system's buffers."""
    streams = (worlds.stream("files", {"file": {"type": "object"}}),)
    rows = (worlds.row("files", "f1", file=worlds.blob(CONTENT, "video/mp4", "big")),)
    return worlds.World((worlds.Connection("files", "files", None, streams, rows),))


def blob_request(token: str, *, close: bool = False) -> bytes:
    """The request for the blob."""
    head = f"GET {BLOB} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    return (head + ("Connection: close\r\n" if close else "") + "\r\n").encode()


def connect(server: Operated) -> socket.socket:
    """A connection with a small receive buffer."""
    split = urlsplit(server.url)
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW)
    line.settimeout(20)
    line.connect((split.hostname, split.port))
    return line


def begin(line: socket.socket, kind: str, token: str) -> None:
    """Makes a connection a client of this kind: sends what it sends before it stops."""
    line.sendall(blob_request(token) if kind == "never reading" else KINDS[kind])
    if kind == "idle":
        assert line.recv(4_096).startswith(b"HTTP/1.1 200")


@contextmanager
def crowd(
    server: Operated, token: str, kinds: Iterable[str], count: int
) -> Iterator[list[socket.socket]]:
    """`count` clients of each kind."""
    with ExitStack() as stack:
        lines = list[socket.socket]()
        for kind in [kind for kind in kinds for _ in range(count)]:
            lines.append(stack.enter_context(connect(server)))
            begin(lines[-1], kind, token)
        yield lines


def seconds_of_health(server: Operated) -> float:
    """The seconds that `/healthz` takes on a new connection."""
    began = monotonic()
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()
    return monotonic() - began


def worker(server: Operated) -> int:
    """The process id of the one worker."""
    (found,) = re.findall(r"Booting worker with pid: (\d+)", server.said())
    return int(found)


def private_bytes(server: Operated) -> int:
    """The private memory of the worker, in bytes."""
    with open(f"/proc/{worker(server)}/status", encoding="ascii") as status:
        (found,) = re.findall(r"RssAnon:\s+(\d+) kB", status.read())
    return int(found) * 1_024
