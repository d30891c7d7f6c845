"""Checks each step of a connection to a server: its name, its port, its certificate.

Failures are `OSError`s with the reason of the system. No check takes longer than its deadline.
"""

import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http.client import HTTPException
from threading import Thread
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

from cryptography import x509

from evidence.work import Deadline

T = TypeVar("T")

PORTS = {"http": 80, "https": 443}
#: The library's message for a proxy that refuses a tunnel.
REFUSED = "Tunnel connection failed: "
#: Raised for a certificate without alternative names, or with ones that cannot be read.
UNREAD = (
    x509.ExtensionNotFound,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The names in a certificate, its issuer, and when it expires."""

    names: tuple[str, ...]
    issuer: str
    own_issuer: bool  # self-signed
    ends: datetime  # with a time zone


@dataclass(frozen=True, slots=True)
class Handshake:
    """The certificate of a server, and the reason of OpenSSL if it is not trusted."""

    certificate: Certificate
    version: str
    distrust: str | None


class ProxyRefused(OSError):
    """The proxy refused to connect; `status` is its status line."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


def endpoint(url: str) -> tuple[str, int]:
    """(host, port) of an address."""
    parts: SplitResult = urlsplit(url)
    return parts.hostname or "", parts.port or PORTS.get(parts.scheme, 80)


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
        listed = within(deadline.left(), look)
    except UnicodeError as error:
        raise OSError(str(error)) from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in listed))


def connect(host: str, port: int, deadline: Deadline) -> None:
    """Opens a connection and closes it."""
    from service.sources.remote.connections import connected

    connected((host, port), deadline).close()


def handshake(url: str, proxy: str | None, trusted: str, deadline: Deadline) -> Handshake:
    """The TLS handshake with a server, through a proxy if one is used."""
    host, _ = endpoint(url)
    strict = ssl.create_default_context(cafile=trusted)
    distrust = None
    try:
        with _opened(url, proxy, deadline) as line:
            with strict.wrap_socket(line, server_hostname=host) as wrapped:
                return Handshake(_certificate(wrapped), wrapped.version() or "", None)
    except ssl.SSLCertVerificationError as error:
        distrust = error.verify_message
    lenient = ssl.create_default_context()
    lenient.check_hostname, lenient.verify_mode = False, ssl.CERT_NONE
    with _opened(url, proxy, deadline) as line:
        with lenient.wrap_socket(line, server_hostname=host) as wrapped:
            return Handshake(_certificate(wrapped), wrapped.version() or "", distrust)


def free(host: str, port: int) -> str | None:
    """Why a server cannot listen on a port; None if it can."""
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            line.bind((host, port))
        except OSError as error:
            return (error.strerror or "cannot be used").lower()
    return None


@contextmanager
def _opened(url: str, proxy: str | None, deadline: Deadline) -> Iterator[socket.socket]:
    """A connection to an address, through a proxy if one is used."""
    from service.sources.remote.connections import connected

    try:
        line = connected(endpoint(url), deadline, through=proxy)
    except HTTPException as error:
        raise ProxyRefused("nothing") from error
    except OSError as error:
        if not str(error).startswith(REFUSED):
            raise
        raise ProxyRefused(str(error).removeprefix(REFUSED)) from error
    with closing(line):
        yield line.sock


def _certificate(line: ssl.SSLSocket) -> Certificate:
    parsed = x509.load_der_x509_certificate(line.getpeercert(binary_form=True) or b"")
    names: list[str] = []
    with suppress(*UNREAD):
        alternatives = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names += alternatives.get_values_for_type(x509.DNSName)
        names += [str(address) for address in alternatives.get_values_for_type(x509.IPAddress)]
    own = parsed.issuer == parsed.subject
    return Certificate(tuple(names), _called(parsed.issuer), own, parsed.not_valid_after_utc)


def _called(name: x509.Name) -> str:
    """The organization and common name of a certificate's subject or issuer."""
    kinds = (x509.NameOID.ORGANIZATION_NAME, x509.NameOID.COMMON_NAME)
    parts = [str(part.value) for kind in kinds for part in name.get_attributes_for_oid(kind)]
    return ", ".join(dict.fromkeys(parts)) or "nobody"
