"""A server on loopback that answers as a test sets, and records its requests."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer

import orjson


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, sent with its length."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Answering = Callable[[Asked], Reply]


def as_json(body: object, status: int = 200, **headers: str) -> Reply:
    """A JSON answer; `_` in the name of a header becomes `-`."""
    spelled = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, orjson.dumps(body), {"Content-Type": "application/json", **spelled})


class Loopback(ThreadingHTTPServer):
    """Answers each request with `answer`, which may be changed at any time."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer: Answering) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Asked] = []
        self.lines: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def end(self) -> None:
        """Stops the server, and closes its connections."""
        self.shutdown()
        for line in self.lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints nothing: readers that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one segment; a reader would wait for the second
    server: Loopback

    def handle(self) -> None:
        self.server.lines.append(self.connection)
        with suppress(OSError):
            super().handle()

    def _any(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        asked = Asked(self.command, self.path, headers, body)
        self.server.asked.append(asked)
        reply = self.server.answer(asked)
        self.send_response(reply.status)
        sent = {name.lower() for name in reply.headers}
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if "content-length" not in sent:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)
        self.wfile.flush()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _any

    def send_response(self, code: int, message: str | None = None) -> None:
        """Sends none of the headers that a server adds by itself: a test sets them all."""
        self.send_response_only(code, message)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@contextmanager
def running(server: BaseServer, end: Callable[[], None] | None = None) -> Iterator[None]:
    """Runs a server in a thread. On exit `end` stops it, by default its own method."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        (end or server.shutdown)()
        thread.join()


@contextmanager
def answering(answer: Answering) -> Iterator[Loopback]:
    """Runs a server. On exit it stops, and its connections are closed."""
    with Loopback(answer) as server, running(server, server.end):
        yield server


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
