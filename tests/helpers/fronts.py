"""Servers in front of a real one, each broken in a way that proxies are."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Event, Thread

import requests

from tests.helpers.loopback import Asked, Loopback, Reply, answering, running
from tests.helpers.waiting import WAIT_SECONDS

Bend = Callable[[Asked, Callable[[Asked], Reply]], Reply]

PAGE = b"<!doctype html><html><title>Company sign-in &amp; access</title><p>Please sign in</html>"
HTML = {"Content-Type": "text/html", "Server": "gateway/1.0"}
OF_THE_LINE = ("host", "connection", "content-length", "accept-encoding", "transfer-encoding")


@contextmanager
def front(of: str, bend: Bend) -> Iterator[Loopback]:
    """A server that forwards requests to the one at `of`, as changed by `bend`."""
    with answering(lambda asked: bend(asked, partial(passing, of))) as server:
        yield server


def passing(of: str, asked: Asked) -> Reply:
    """The answer of the server at `of` to a request."""
    with requests.Session() as session:
        session.trust_env = False
        found = session.request(
            asked.method,
            of + asked.target,
            headers=_kept(asked.headers),
            data=asked.body,
            allow_redirects=False,
            timeout=WAIT_SECONDS,
        )
    return Reply(found.status_code, found.content, _kept(found.headers))


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    left_out = (*OF_THE_LINE, "content-encoding", "date")
    return {name: value for name, value in headers.items() if name.lower() not in left_out}


def without(*names: str) -> Bend:
    """Removes headers from requests."""

    def bend(asked: Asked, passed: Callable[[Asked], Reply]) -> Reply:
        kept = {name: value for name, value in asked.headers.items() if name not in names}
        return passed(replace(asked, headers=kept))

    return bend


def redirecting(target: str, status: int = 301) -> Bend:
    """Redirects every POST; `{}` in the target is the path."""

    def bend(asked: Asked, passed: Callable[[Asked], Reply]) -> Reply:
        if asked.method != "POST":
            return passed(asked)
        return Reply(status, b"", {"Location": target.format(asked.target)})

    return bend


def saying(status: int, body: bytes = PAGE, **headers: str) -> Bend:
    """Answers POSTs without forwarding them."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()} or HTML

    def bend(asked: Asked, passed: Callable[[Asked], Reply]) -> Reply:
        return passed(asked) if asked.method != "POST" else Reply(status, body, sent)

    return bend


def rewriting(status: int) -> Bend:
    """Replaces the body of answers with this status by an HTML page."""

    def bend(asked: Asked, passed: Callable[[Asked], Reply]) -> Reply:
        found = passed(asked)
        if found.status != status:
            return found
        headers = {name: value for name, value in found.headers.items() if name[:4] != "Cont"}
        return Reply(status, PAGE, {**headers, **HTML})

    return bend


def unchallenged(asked: Asked, passed: Callable[[Asked], Reply]) -> Reply:
    """Removes the challenge from refusals."""
    found = passed(asked)
    kept = {name: text for name, text in found.headers.items() if name != "WWW-Authenticate"}
    return replace(found, headers=kept)


def hanging(word: bytes, until: Event) -> Bend:
    """Does not answer requests that contain a word until the test ends."""

    def bend(asked: Asked, passed: Callable[[Asked], Reply]) -> Reply:
        if word in asked.body:
            until.wait()
        return passed(asked)

    return bend


class Tunnels(ThreadingTCPServer):
    """A proxy for TLS: opens tunnels, or answers with `status` if that is not 200."""

    daemon_threads = True

    def __init__(self, status: str) -> None:
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.status = status
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Tunnel(StreamRequestHandler):
    server: Tunnels
    rbufsize = 0

    def handle(self) -> None:
        asked = self.rfile.readline().decode().strip()
        if not asked:  # a check whether the port is open
            return
        while self.rfile.readline().strip():
            pass
        self.server.asked.append(asked)
        self.wfile.write(f"HTTP/1.1 {self.server.status}\r\n\r\n".encode())
        if not self.server.status.startswith("200"):
            return
        host, _, port = asked.split()[1].rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            back = Thread(target=_pour, args=(there, self.connection))
            back.start()
            _pour(self.connection, there)
            back.join()


def _pour(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def tunnels(status: str = "200 Connection established") -> Iterator[Tunnels]:
    """Runs a proxy for TLS."""
    with Tunnels(status) as server, running(server):
        yield server
