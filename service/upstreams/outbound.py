"""The one place that opens connections to other servers.

Every request is bounded: one deadline from the first look-up to the last byte, a cap on the body,
no redirect to another origin. What goes wrong is an `EvidenceError` whose message names neither
address nor path.

HTTP proxies and CA bundles are taken from the environment, as usual. `.netrc` and cookies are not.
Only a name server that does not answer may hold a request longer than its deadline.
"""

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_auth_from_url, select_proxy
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from evidence import account
from evidence.errors import EvidenceError, NotFound, TooLarge
from evidence.version import VERSION
from evidence.work import Deadline
from service.upstreams.ports import Late, Unreached
from service.upstreams.watch import Watch

REDIRECTS_MAX = 3
READ_BYTES = 65_536
HOSTS_KEPT = 64  # connections a thread keeps: one to each source of a large package

#: All that requests and what lies under it may raise.
FAULTS = (requests.RequestException, HTTPError, OSError, ValueError)

Parameters = Sequence[tuple[str, str]]
_Origin = tuple[str, str | None, int | None]

_HEADERS = {"User-Agent": f"rung/{VERSION}", "Accept-Encoding": "identity"}
_PORTS = {"http": 80, "https": 443}
_thread = threading.local()


class Cut(Unreached):
    """A connection that was refused or broke off: the same request may work a moment later."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said. `headers` are looked up in any case; `body` is decoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Opened:
    """An answer whose body is still to be read."""

    def __init__(self, response: requests.Response, watch: Watch) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._watch = watch

    def pieces(self, most_bytes: int) -> Iterator[bytes]:
        """The body, decoded; raises `TooLarge` before it gives more than `most_bytes`."""
        try:
            _check_length(self._response, most_bytes)
            size = 0
            for piece in self._response.iter_content(READ_BYTES):
                size += len(piece)
                if size > most_bytes:
                    raise _too_large()
                yield piece
        except FAULTS as error:
            raise _failure(error, self._watch) from None
        if self._watch.fired:  # a body without a length ends where its connection is cut
            raise _timed_out()


def ask(
    method: str,
    url: str,
    *,
    deadline: Deadline,
    most_bytes: int,
    params: Parameters = (),
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> Answer:
    """What the server at `url` says, with any status; a redirect is an error.

    Raises `Cut` and other `Unavailable` (`upstream_unreachable`, for a redirect
    `upstream_invalid_response`), `TimedOut` (`upstream_timeout`) and `TooLarge`
    (`upstream_too_large`).
    """
    with opened(method, url, deadline=deadline, params=params, headers=headers, form=form) as found:
        return Answer(found.status, found.headers, b"".join(found.pieces(most_bytes)))


@contextmanager
def opened(
    method: str,
    url: str,
    *,
    deadline: Deadline,
    params: Parameters = (),
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> Iterator[Opened]:
    """The same with the body unread, to be read inside the context."""
    with Watch(deadline) as watch, ExitStack() as stack:
        try:
            response = _send(watch, method, url, headers, params=params, data=form)
        except FAULTS as error:
            raise _failure(error, watch) from None
        stack.enter_context(response)
        if response.is_redirect:
            raise _unreachable("sends readers elsewhere", code="upstream_invalid_response")
        yield Opened(response, watch)


def seen(
    method: str,
    url: str,
    *,
    deadline: Deadline,
    most_bytes: int,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> Answer:
    """What a client of `url` is told, redirects too; raises as `ask` does."""
    with Watch(deadline) as watch:
        try:
            with _send(watch, method, url, headers, data=body) as response:
                found = b"".join(Opened(response, watch).pieces(most_bytes))
                return Answer(response.status_code, response.headers, found)
        except FAULTS as error:
            raise _failure(error, watch) from None


def way(url: str) -> tuple[str | None, str]:
    """(the proxy that requests to `url` take, the file of the certificates they trust)."""
    told = _session().merge_environment_settings(url, {}, True, None, None)
    trusted = told["verify"] if isinstance(told["verify"], str) else DEFAULT_CA_BUNDLE_PATH
    return select_proxy(url, told["proxies"]), trusted


def download(
    url: str, *, seconds: float, most_bytes: int, headers: Mapping[str, str] | None = None
) -> Iterator[bytes]:
    """The body at `url`, in pieces, decoded; the pieces together are at most `most_bytes`.

    The first piece is asked for when it is wanted, and from then on all must be read within
    `seconds`. Up to three redirects within the same origin are followed. Raises `NotFound` where
    the server says so, `TooLarge` (`upstream_too_large`), `TimedOut` (`upstream_timeout`) and, for
    everything else, `Unavailable` (`upstream_unreachable`).
    """
    with Watch(Deadline.after(seconds)) as watch:
        try:
            with _followed(url, headers or {}, watch) as response:
                yield from Opened(response, watch).pieces(most_bytes)
        except FAULTS as error:
            raise _failure(error, watch) from error


@contextmanager
def _followed(url: str, headers: Mapping[str, str], watch: Watch) -> Iterator[requests.Response]:
    """The answer at `url` or where it leads, unread; raises unless it is a plain 200."""
    auth = _auth(url)
    for _ in range(REDIRECTS_MAX + 1):
        response = _send(watch, "GET", url, headers, auth=auth)
        with response:
            if not response.is_redirect:
                _check_status(response)
                yield response
                return
            target = urljoin(url, response.headers["Location"])
        if _origin(target) != _origin(url):
            raise _unreachable("sends readers to another server")
        url = target
    raise _unreachable("redirects too often")


def _send(
    watch: Watch,
    method: str,
    url: str,
    headers: Mapping[str, str] | None,
    auth: AuthBase | None = None,
    **more: Any,
) -> requests.Response:
    """The answer to one request, its body unread.

    Servers close idle connections at any time; one that was kept and proves dead is replaced.
    Nothing is asked here that may not be asked twice.
    """

    request = requests.PreparedRequest()
    sent = {**_HEADERS, **account.headers(), **(headers or {})}
    request.prepare(method, url, sent, auth=auth or _AsGiven(), **more)
    _thread.watch, _thread.kept = watch, False
    try:
        response = _session().ask(request, watch.left())
    except requests.ConnectionError:
        if not _thread.kept:
            raise
        response = _session().ask(request, watch.left())
    finally:
        _thread.watch = None
    account.current().asked(f"{response.status_code // 100}xx")
    return response


def _origin(url: str) -> _Origin:
    parts: SplitResult = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _check_status(response: requests.Response) -> None:
    status = response.status_code
    if status in (404, 410):
        raise NotFound("The server asked has no such file. Check what was asked for.")
    if status != 200:
        raise _unreachable(f"answers with status {status}")


def _check_length(response: requests.Response, most_bytes: int) -> None:
    """Refuses a body that says it is too large, before any of it is read."""
    if response.request.method == "HEAD":  # tells the length of a body it does not have
        return
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > most_bytes:
        raise _too_large()


def _failure(error: Exception, watch: Watch) -> EvidenceError:
    """What a fault of the network means, without where it happened; it is counted."""
    found = _meaning(error, watch)
    account.current().asked(found.code)
    return found


def _meaning(error: Exception, watch: Watch) -> EvidenceError:
    if watch.over or isinstance(error, (requests.Timeout, TimeoutError)):
        return _timed_out()
    if isinstance(error, requests.exceptions.SSLError):
        return _unreachable("has no certificate that is trusted here")
    if isinstance(error, requests.exceptions.ContentDecodingError):
        return _unreachable("sends a body that cannot be decoded")
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return _unreachable("breaks off in the middle of its answer", Cut)
    if isinstance(error, requests.ConnectionError):
        found = _unreachable("refuses the connection or cuts it", Cut)
        found.why = f"does not answer: {_reason(error)}"
        return found
    return _unreachable("cannot be asked")


def _reason(error: BaseException) -> str:
    """Why there is no connection, by the fault of the system that lies under the others."""
    under: BaseException | None = error
    while under is not None and not isinstance(under, (ConnectionRefusedError, socket.gaierror)):
        under = under.__cause__ or under.__context__
    if under is None:
        return "the connection breaks off"
    return "no such host" if isinstance(under, socket.gaierror) else "connection refused"


def _unreachable(why: str, kind: type[Unreached] = Unreached, code: str | None = None) -> Unreached:
    found = kind(f"A server behind this one {why}. Try again later.", code=code)
    found.why = why
    return found


def _timed_out() -> Late:
    return Late(
        "A server behind this one takes too long. Try again later.", code="upstream_timeout"
    )


def _too_large() -> TooLarge:
    return TooLarge(
        "A server behind this one sends more than is read. Ask for something smaller.",
        code="upstream_too_large",
    )


class _Watched(HTTPConnection):
    """A connection that the watch of the running request can cut."""

    def _new_conn(self) -> socket.socket:
        """A connected socket. The addresses of the host share the time that is left."""
        watch: Watch = _thread.watch
        found = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
        failed = OSError()
        for number, (family, kind, protocol, _, address) in enumerate(found):
            with ExitStack() as stack:
                try:
                    line = stack.enter_context(socket.socket(family, kind, protocol))
                    line.settimeout(watch.left() / (len(found) - number))
                    line.connect(address)
                    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    watch.keep(line)
                    stack.pop_all()
                    return line
                except OSError as error:
                    failed = error
        raise failed

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:  # kept from an earlier request
            _thread.kept = True
            _thread.watch.keep(self.sock)
        super().request(*args, **kwargs)


class _WatchedTLS(HTTPSConnection, _Watched):
    """The same inside TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Watched


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedTLS


class _Adapter(HTTPAdapter):
    """Opens watched connections, to the server itself or to a proxy."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        _use_watched(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        if not isinstance(manager, ProxyManager):  # SOCKS connects in its own way
            raise requests.exceptions.InvalidProxyURL
        return _use_watched(manager)


def _use_watched(manager: PoolManager) -> PoolManager:
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _TLSPool}
    return manager


class _Session(requests.Session):
    """Keeps connections, and nothing else, from one request to the next."""

    def __init__(self) -> None:
        super().__init__()
        for scheme in _PORTS:
            self.mount(f"{scheme}://", _Adapter(pool_connections=HOSTS_KEPT, pool_maxsize=1))
        self._told: dict[_Origin, Any] = {}

    def ask(self, request: requests.PreparedRequest, seconds: float) -> requests.Response:
        """The answer, its body unread; without the cookies, hooks and redirects of `send`."""
        url = str(request.url)
        origin = _origin(url)
        if origin not in self._told:  # reading the environment takes long
            self._told[origin] = self.merge_environment_settings(url, {}, True, None, None)
        return self.get_adapter(url).send(request, timeout=seconds, **self._told[origin])


def _session() -> _Session:
    if not hasattr(_thread, "session"):
        _thread.session = _Session()
    session: _Session = _thread.session
    return session


class _AsGiven(AuthBase):
    """Leaves the headers of the request alone, where requests would put in those of `.netrc`."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


def _auth(url: str) -> AuthBase:
    user, password = get_auth_from_url(url)
    return HTTPBasicAuth(user, password) if user or password else _AsGiven()
