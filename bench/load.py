"""A closed loop of HTTP requests: each connection sends its next request when it gets an answer.

`wrk` makes the load if it is installed, because it needs least of the client's core. Otherwise the
loop below does, over plain sockets. `Load.client_share` shows how busy the client was: below one,
it waited for the server and was not the limit.
"""

import os
import re
import resource
import selectors
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice, takewhile
from pathlib import Path

from bench.figures import percentiles

HOST = "127.0.0.1"
#: The `Host` of requests. Some servers require a port, but accept any.
NAMED = f"{HOST}:80"
READ_BYTES = 262_144
ANSWER_SECONDS = 60.0
LUA = Path(__file__).with_name("load.lua")
MICROSECONDS = 1_000_000
IN_CHUNKS = -1  # instead of a size
LAST_CHUNK = b"\r\n0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Load:
    """The result of a load: requests per second, and percentiles of the seconds per request.

    `statuses` counts answers by status if other statuses than 200 were allowed.
    """

    rate: float
    p50: float
    p95: float
    p99: float
    client_share: float
    count: int = 0
    statuses: Counter[int] = field(default_factory=Counter)


def post(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """A POST request as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {NAMED}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def generator(seconds: float) -> str:
    """The name and version of what makes loads of `seconds`."""
    if not _by_wrk(seconds):
        return "the loop of bench/load.py"
    output = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout
    return " ".join(output.split()[:2])


def _by_wrk(seconds: float) -> bool:
    return seconds >= 1 and shutil.which("wrk") is not None  # wrk counts whole seconds


def loaded(port: int, requests: Sequence[bytes], *, seconds: float, connections: int) -> Load:
    """Repeats the requests for `seconds`, with `wrk` if it is installed and can run that long."""
    if _by_wrk(seconds):
        return _wrk(port, requests, seconds=seconds, connections=connections)
    until = time.perf_counter() + seconds
    endless = takewhile(lambda _: time.perf_counter() < until, cycle(requests))
    return _loop(port, endless, connections=connections, tolerant=False)


def drive(
    port: int,
    requests: Sequence[bytes],
    *,
    total: int,
    connections: int,
    tolerant: bool = False,
) -> Load:
    """Sends `total` requests, repeating `requests`, over `connections` connections, by the loop.

    Raises `RuntimeError` if an answer is not 200, unless `tolerant`, or if none comes for a minute.
    """
    waiting = islice(cycle(requests), total)
    return _loop(port, waiting, connections=connections, tolerant=tolerant)


def ask(port: int, request: bytes, *, tolerant: bool = False) -> bytes:
    """The body of the answer to one request."""
    call = _Call(port, iter((request,)), tolerant)
    with call.socket:
        call.send()
        while not call.receive():
            pass
    return call.body


def _loop(port: int, waiting: Iterator[bytes], *, connections: int, tolerant: bool) -> Load:
    seconds: list[float] = []
    statuses: Counter[int] = Counter()
    busy, begun = time.process_time(), time.perf_counter()
    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        calls = [_Call(port, waiting, tolerant) for _ in range(connections)]
        for call in calls:
            stack.enter_context(call.socket)
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
                    statuses[call.status] += 1
                    open_calls -= not call.send()
    took, busy = time.perf_counter() - begun, time.process_time() - busy
    rate = len(seconds) / took
    return Load(rate, *percentiles(seconds), busy / took, len(seconds), statuses)


def _wrk(port: int, requests: Sequence[bytes], *, seconds: float, connections: int) -> Load:
    with tempfile.NamedTemporaryFile() as file:
        for request in requests:
            file.write(b"%d\n%s" % (len(request), request))
        file.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{round(seconds)}s"]
        command += ["--timeout", f"{ANSWER_SECONDS:.0f}s", "-s", str(LUA), f"http://{HOST}:{port}"]
        before, begun = _children_cpu(), time.perf_counter()
        run = subprocess.run(
            command,
            env={**os.environ, "BENCH_REQUESTS": file.name},
            capture_output=True,
            text=True,
            check=False,
        )
        took, busy = time.perf_counter() - begun, _children_cpu() - before
    return read_wrk(run.stdout + run.stderr, busy / took)


def read_wrk(output: str, client_share: float) -> Load:
    """Parses the line that `load.lua` prints. Raises `RuntimeError` if any request failed."""
    found = re.search(r"^RESULT (.+)$", output, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"wrk did not finish: {output}")
    count, micros, p50, p95, p99, *errors = (float(part) for part in found[1].split())
    if any(errors) or not count:
        named = ("connect", "read", "write", "status", "timeout")
        failed = ", ".join(f"{kind} {n:.0f}" for kind, n in zip(named, errors) if n)
        raise RuntimeError(f"requests failed: {failed or 'none was answered'}")
    fifty, ninety_five, ninety_nine = (value / MICROSECONDS for value in (p50, p95, p99))
    rate = count / (micros / MICROSECONDS)
    return Load(rate, fifty, ninety_five, ninety_nine, client_share, int(count))


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Call:
    """One connection: the current request, and the part of its answer that has arrived."""

    def __init__(self, port: int, waiting: Iterator[bytes], tolerant: bool) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.seconds = 0.0
        self.status = 0
        self.body = b""
        self._waiting = waiting
        self._tolerant = tolerant
        self._sent = 0.0
        self._answer = bytearray()
        self._size = 0

    def send(self) -> bool:
        """Sends the next request. Returns False if there is none."""
        request = next(self._waiting, None)
        if request is None:
            return False
        self._answer.clear()
        self._size = 0
        self._sent = time.perf_counter()
        self.socket.sendall(request)
        return True

    def receive(self) -> bool:
        """Reads what has arrived. Returns True once the answer is complete."""
        part = self.socket.recv(READ_BYTES)
        if not part:
            raise RuntimeError("the server closed the connection")
        self._answer += part
        if not self._size:
            self.status, self._size = _size(self._answer)
            if self._size and self.status != 200 and not self._tolerant:
                raise RuntimeError(f"the server answered {bytes(self._answer[:300])!r}")
        if self._size == IN_CHUNKS:
            whole = self._answer.endswith(LAST_CHUNK)
        else:
            whole = 0 < self._size <= len(self._answer)
        if whole:
            self.seconds = time.perf_counter() - self._sent
            body = bytes(self._answer).partition(b"\r\n\r\n")[2]
            self.body = _joined(body) if self._size == IN_CHUNKS else body
        return whole


def _size(answer: bytearray) -> tuple[int, int]:
    """(status, bytes of the answer or `IN_CHUNKS`); zeros until the head has arrived."""
    head, blank, _ = bytes(answer).partition(b"\r\n\r\n")
    if not blank:
        return 0, 0
    status, *lines = head.split(b"\r\n")
    for line in lines:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(status.split()[1]), len(head) + len(blank) + int(value)
        if name.lower() == b"transfer-encoding":
            return int(status.split()[1]), IN_CHUNKS
    raise RuntimeError(f"the answer declares no length: {status.decode()}")


def _joined(body: bytes) -> bytes:
    """The body of a chunked answer."""
    parts = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(rest[:length])
        body = rest[length + 2 :]
    return b"".join(parts)
