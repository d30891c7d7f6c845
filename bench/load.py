"""A closed loop of HTTP posts: each connection sends its next request when it has its answer.

It runs in this process, over plain sockets and with requests that are bytes already, so that it
costs a fraction of what the server does; `Load.client_share` shows that it was not the limit.
"""

import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

HOST = "127.0.0.1"
READ_BYTES = 262_144
ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Load:
    """What a number of requests took: requests a second, and seconds for one."""

    rate: float
    p50: float
    p95: float
    p99: float
    client_share: float


def post(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """A request as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {HOST}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def drive(port: int, requests: Sequence[bytes], *, total: int, connections: int) -> Load:
    """Sends `total` requests, `requests` again and again, over that many connections.

    Raises `RuntimeError` for an answer that is not 200, or none within half a minute.
    """
    waiting = islice(cycle(requests), total)
    seconds: list[float] = []
    busy, begun = time.process_time(), time.perf_counter()
    with selectors.DefaultSelector() as selector:
        calls = [_Call(port, waiting) for _ in range(connections)]
        for call in calls:
            selector.register(call.socket, selectors.EVENT_READ, call)
        open_calls = sum(call.send() for call in calls)
        while open_calls:
            ready = selector.select(ANSWER_SECONDS)
            if not ready:
                raise RuntimeError("the server does not answer")
            for key, _ in ready:
                call = key.data
                if call.receive():
                    seconds.append(call.seconds)
                    open_calls -= not call.send()
        for call in calls:
            call.socket.close()
    took, busy = time.perf_counter() - begun, time.process_time() - busy
    return Load(len(seconds) / took, *percentiles(seconds), busy / took)


def ask(port: int, request: bytes) -> bytes:
    """The body of the answer to one request."""
    call = _Call(port, iter((request,)))
    call.send()
    while not call.receive():
        pass
    call.socket.close()
    return call.body


def percentiles(seconds: Sequence[float]) -> tuple[float, float, float]:
    """The 50th, 95th and 99th of a hundred, each a value that occurred."""
    ordered = sorted(seconds)
    fifty, ninety_five, ninety_nine = (
        ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95, 99)
    )
    return fifty, ninety_five, ninety_nine


class _Call:
    """One connection: a request on its way, and what has come of its answer."""

    def __init__(self, port: int, waiting: Iterator[bytes]) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.seconds = 0.0
        self.body = b""
        self._waiting = waiting
        self._sent = 0.0
        self._answer = bytearray()
        self._size = 0

    def send(self) -> bool:
        """Sends the next request; False where there is none."""
        request = next(self._waiting, None)
        if request is None:
            return False
        self._answer.clear()
        self._size = 0
        self._sent = time.perf_counter()
        self.socket.sendall(request)
        return True

    def receive(self) -> bool:
        """Takes what has come; True once the answer is whole."""
        part = self.socket.recv(READ_BYTES)
        if not part:
            raise RuntimeError("the server closed the connection")
        self._answer += part
        if not self._size:
            self._size = _size(self._answer)
        if not self._size or len(self._answer) < self._size:
            return False
        self.seconds = time.perf_counter() - self._sent
        self.body = bytes(self._answer).partition(b"\r\n\r\n")[2]
        return True


def _size(answer: bytearray) -> int:
    """The bytes of the whole answer; 0 until its head is there."""
    head, blank, _ = bytes(answer).partition(b"\r\n\r\n")
    if not blank:
        return 0
    status, *lines = head.split(b"\r\n")
    if not status.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"the server answered {status.decode()}")
    for line in lines:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(head) + len(blank) + int(value)
    raise RuntimeError("the answer does not say how long it is")
