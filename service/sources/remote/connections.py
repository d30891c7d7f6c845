"""Connections to other servers: reused between requests of a thread, and bound to deadlines."""

import io
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_auth_from_url, select_proxy
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from evidence import request_log
from evidence.version import VERSION
from evidence.work import Deadline
from service.addresses import DEFAULT_PORTS, Origin, origin

POOLED_HOSTS = 64  # connections a thread keeps: one to each source of a large package

#: All errors of requests and the libraries below it.
FAULTS = (requests.RequestException, HTTPError, OSError, ValueError)
TOO_LATE = (requests.Timeout, TimeoutError)
UNTRUSTED = requests.exceptions.SSLError
UNDECODABLE = requests.exceptions.ContentDecodingError
CUT_SHORT = requests.exceptions.ChunkedEncodingError
UNCONNECTED = requests.ConnectionError

#: Whether a connection may go to an IP address.
Accepts = Callable[[str], bool]

_HEADERS = {"User-Agent": f"rung/{VERSION}", "Accept-Encoding": "identity"}
_ESCAPED_DOTS = frozenset({"%2E", "%2E%2E"})
_thread = threading.local()


def send(
    deadline: Deadline,
    method: str,
    url: str,
    headers: Mapping[str, str] | None,
    auth: AuthBase | None = None,
    accepts: Accepts | None = None,
    **options: Any,
) -> requests.Response:
    """The answer to one request, its body unread.

    Servers may close idle connections at any time; a reused one that turns out closed is replaced.
    Every request must be safe to repeat. With `accepts`, the connection is new, uses no proxy, and
    goes to a host only if all its addresses are accepted.
    """
    request = requests.PreparedRequest()
    sent = {**_HEADERS, **request_log.headers(), **(headers or {})}
    request.prepare(method, url, sent, auth=auth or _AsGiven(), **options)
    request.url = _with_dots(url, str(request.url))
    _thread.deadline, _thread.reused, _thread.accepts = deadline, False, accepts
    session = _Session(direct=True) if accepts else _session()
    try:
        response = session.ask(request, remaining_seconds(deadline))
    except requests.ConnectionError:
        if accepts or not _thread.reused:
            raise
        response = session.ask(request, remaining_seconds(deadline))
    request_log.current().on_upstream_outcome(f"{response.status_code // 100}xx")
    return response


def _with_dots(url: str, prepared: str) -> str:
    """The prepared address with its escaped dot segments, which preparing would resolve."""
    path = urlsplit(url).path
    if not _ESCAPED_DOTS.intersection(path.split("/")):
        return prepared
    return urlunsplit(urlsplit(prepared)._replace(path=path))


def proxy_and_certificates(url: str) -> tuple[str | None, str]:
    """(the proxy for requests to `url`, the file of trusted certificates)."""
    merged = _session().merge_environment_settings(url, {}, True, None, None)
    trusted = merged["verify"] if isinstance(merged["verify"], str) else DEFAULT_CA_BUNDLE_PATH
    return select_proxy(url, merged["proxies"]), trusted


def connected(
    address: tuple[str, int], deadline: Deadline, *, through: str | None = None
) -> HTTPConnection:
    """A plain connection to a host and port, through the proxy `through` if given."""
    target = urlsplit(through or "")
    first = (target.hostname or "", target.port or DEFAULT_PORTS["http"]) if through else address
    line = _Bounded(*first)
    if through:
        line.set_tunnel(*address, headers=HTTPAdapter().proxy_headers(through))
    _thread.deadline, _thread.accepts = deadline, None
    line.connect()
    return line


def remaining_seconds(deadline: Deadline) -> float:
    """Seconds until the deadline, above zero; raises `TimeoutError` if none are left."""
    seconds = deadline.left()
    if not seconds:
        raise TimeoutError("timed out")
    return seconds


class _Bytes(io.RawIOBase):
    """The bytes of a response. A socket's timeout restarts with each byte; this ends at the
    deadline."""

    def __init__(self, raw: io.RawIOBase, line: socket.socket, deadline: Deadline) -> None:
        self._raw, self._line, self._deadline = raw, line, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._line.settimeout(remaining_seconds(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    """A response that is read until the deadline of its request."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        raw: Any = self.fp.detach()
        self.fp = io.BufferedReader(_Bytes(raw, sock, _thread.deadline))


class _Bounded(HTTPConnection):
    """A connection whose every step ends at the deadline of the running request."""

    response_class = _Response

    def _new_conn(self) -> socket.socket:
        """Connects a socket. The addresses of the host share the remaining time."""
        deadline: Deadline = _thread.deadline
        accepts: Accepts | None = _thread.accepts
        addresses = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
        if accepts and not all(accepts(str(address[0])) for *_, address in addresses):
            raise OSError("an address of the host is not accepted")
        failed = OSError()
        for number, (family, kind, protocol, _, address) in enumerate(addresses):
            with ExitStack() as stack:
                try:
                    line = stack.enter_context(socket.socket(family, kind, protocol))
                    line.settimeout(remaining_seconds(deadline) / (len(addresses) - number))
                    line.connect(address)
                    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    line.settimeout(remaining_seconds(deadline))
                    stack.pop_all()
                    return line
                except OSError as error:
                    failed = error
        raise failed

    def request(self, *args: Any, **kwargs: Any) -> None:
        _thread.reused = _thread.reused or self.sock is not None
        super().request(*args, **kwargs)


class _BoundedTLS(HTTPSConnection, _Bounded):
    """The same inside TLS."""


class _Adapter(HTTPAdapter):
    """Opens connections with deadlines, to the server itself or to a proxy."""

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        if type(pool) not in (HTTPConnectionPool, HTTPSConnectionPool):  # SOCKS
            raise requests.exceptions.InvalidProxyURL
        pool.ConnectionCls = _BoundedTLS if isinstance(pool, HTTPSConnectionPool) else _Bounded
        return pool


class _Session(requests.Session):
    """Keeps nothing but connections between requests. A `direct` one uses no proxy."""

    def __init__(self, *, direct: bool = False) -> None:
        super().__init__()
        self._direct = direct
        for scheme in DEFAULT_PORTS:
            self.mount(f"{scheme}://", _Adapter(pool_connections=POOLED_HOSTS, pool_maxsize=1))
        self._environment: dict[Origin, Any] = {}

    def ask(self, request: requests.PreparedRequest, seconds: float) -> requests.Response:
        """The answer, its body unread; without the cookies, hooks and redirects of `send`."""
        url = str(request.url)
        server = origin(url)
        if server not in self._environment:  # reading the environment is slow
            environment = self.merge_environment_settings(url, {}, True, None, None)
            self._environment[server] = environment | ({"proxies": {}} if self._direct else {})
        return self.get_adapter(url).send(request, timeout=seconds, **self._environment[server])


def _session() -> _Session:
    if not hasattr(_thread, "session"):
        _thread.session = _Session()
    session: _Session = _thread.session
    return session


class _AsGiven(AuthBase):
    """Leaves the headers of the request unchanged; requests would add credentials from `.netrc`."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


def auth(url: str) -> AuthBase:
    """The name and password in an address, if any."""
    user, password = get_auth_from_url(url)
    return HTTPBasicAuth(user, password) if user or password else _AsGiven()
