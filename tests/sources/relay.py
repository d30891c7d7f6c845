"""Servers on loopback before another one, which note requests and can change what is answered."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any, NamedTuple

import requests

from tests.helpers.loopback import running
from tests.helpers.waiting import WAIT_SECONDS


class Request(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    body: str
    authorization: str


class Reply(NamedTuple):
    """An answer; `location` is that of a redirect."""

    status: int
    body: bytes
    location: str = ""


class Relay(ThreadingHTTPServer):
    """Passes requests on to a port. `change` makes the answer of a request and its real answer."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.port = port, self.server_address[1]
        self.requests = list[Request]()
        self.change: Callable[[Request, Reply], Reply] = lambda request, reply: reply


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Relay

    def do_PROPFIND(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        authorization = self.headers.get("Authorization", "")
        request = Request(self.command, self.path, body.decode(), authorization)
        self.server.requests.append(request)
        answer = requests.request(
            self.command,
            f"http://127.0.0.1:{self.server.target}{self.path}",
            data=body,
            headers={**self.headers, "Accept-Encoding": "identity"},
            timeout=WAIT_SECONDS,
            allow_redirects=False,
        )
        reply = Reply(answer.status_code, answer.content, answer.headers.get("Location", ""))
        self._send(self.server.change(request, reply))

    do_REPORT = do_GET = do_PROPFIND

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        if reply.location:
            self.send_header("Location", reply.location)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Prints nothing."""


class Wire(ThreadingTCPServer):
    """Passes bytes on to a port. `change` makes what a client gets from its command and the answer.

    A connection ends if it raises an `OSError`. `ask` makes what the server gets.
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.target, self.port = port, self.server_address[1]
        self.change: Callable[[bytes, bytes], bytes] = lambda command, answer: answer
        self.ask: Callable[[bytes], bytes] = lambda command: command


class _Connection(BaseRequestHandler):
    server: Wire
    command = b""

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.target)) as target:
            commands = threading.Thread(target=self._pass_commands, args=(target,), daemon=True)
            commands.start()
            with suppress(OSError):
                while answer := target.recv(1 << 20):
                    self.request.sendall(self.server.change(self.command, answer))
            for end in (self.request, target):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            commands.join()

    def _pass_commands(self, target: socket.socket) -> None:
        with suppress(OSError):
            while part := self.request.recv(1 << 20):
                self.command = (b"" if self.command.endswith(b"\n") else self.command) + part
                target.sendall(self.server.ask(part))
            target.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay_to(port: int) -> Iterator[Relay]:
    """Runs a relay of HTTP to a port."""
    with Relay(port) as relay, running(relay):
        yield relay


@contextmanager
def wire_to(port: int) -> Iterator[Wire]:
    """Runs a relay of bytes to a port."""
    with Wire(port) as wire, running(wire):
        yield wire
