"""Checks a connection to a server step by step: the name, the port and the certificate.

Failures are `OSError`s with the system's reason. No check takes longer than its deadline.
"""

import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPException
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from evidence.work import Deadline
from service.addresses import DEFAULT_PORTS

T = TypeVar("T")

#: The library's message for a proxy that refuses a tunnel.
REFUSED = "Tunnel connection failed: "


@dataclass(frozen=True, slots=True)
class Handshake:
    """The revision of TLS, the issuer of the certificate, and when it expires."""

    version: str
    issuer: str
    ends: datetime


class ProxyRefused(OSError):
    """The proxy refused to connect; `status` is its status line."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


def endpoint(url: str) -> tuple[str, int]:
    """(host, port) of an address."""
    parts: SplitResult = urlsplit(url)
    return parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 80)


def within(seconds: float, ask: Callable[[], T]) -> T:
    """What `ask` returns or raises; raises `TimeoutError` if that takes longer."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(ask())
        except Exception as error:
            outcome.set_exception(error)

    Thread(target=run, daemon=True).start()
    return outcome.result(seconds)


def addresses(host: str, port: int, deadline: Deadline) -> tuple[str, ...]:
    """The addresses of a host; raises `TimeoutError` if a name server does not answer in time."""
    look = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        entries = within(deadline.left(), look)
    except UnicodeError as error:
        raise OSError(str(error)) from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in entries))


def connect(host: str, port: int, deadline: Deadline) -> None:
    """Opens a connection and closes it."""
    from service.sources.remote.connections import connected

    connected((host, port), deadline).close()


def handshake(url: str, proxy: str | None, trusted: str, deadline: Deadline) -> Handshake:
    """The TLS handshake with a server, through a proxy if one is used.

    Raises `ssl.SSLCertVerificationError` for a certificate that is not trusted.
    """
    from service.sources.remote.connections import connected

    host, _ = endpoint(url)
    context = ssl.create_default_context(cafile=trusted)
    try:
        line = connected(endpoint(url), deadline, through=proxy)
    except HTTPException as error:
        raise ProxyRefused("nothing") from error
    except OSError as error:
        if not str(error).startswith(REFUSED):
            raise
        raise ProxyRefused(str(error).removeprefix(REFUSED)) from error
    with closing(line), context.wrap_socket(line.sock, server_hostname=host) as wrapped:
        certificate: Any = wrapped.getpeercert()
        version = wrapped.version() or ""
    issuer_names = {name: text for part in certificate["issuer"] for name, text in part}
    issuer = issuer_names.get("organizationName") or issuer_names.get("commonName", "nobody")
    seconds = ssl.cert_time_to_seconds(certificate["notAfter"])
    return Handshake(version, issuer, datetime.fromtimestamp(seconds, UTC))
