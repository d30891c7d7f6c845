"""Sends all HTTP requests to other servers, each within limits.

Every request has limits: one deadline from the first lookup to the last byte, a maximum body size,
no redirect to another origin. Errors are `EvidenceError`s whose messages contain neither address
nor path.

HTTP proxies and CA bundles are read from the environment, as usual. `.netrc` and cookies are
ignored. Only an unresponsive name server can delay a request beyond its deadline.

The HTTP library is loaded on first use, because many servers never call another.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from evidence import request_log
from evidence.errors import EvidenceError, NotFound, TooLarge
from evidence.limits import BUDGETS
from evidence.work import Deadline, parse_json
from service.addresses import origin
from service.ports import Late, Unreached

if TYPE_CHECKING:
    from requests import Response


Parameters = Sequence[tuple[str, str]]
#: Errors of a server that did not answer; each has `why`.
UNANSWERED: Final = (Late, Unreached)


class Cut(Unreached):
    """The connection was refused or broken; a retry may succeed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a server. Lookups in `headers` ignore case; `body` is decoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The value of a JSON body with status 200; None for any other."""
        try:
            return parse_json(self.body) if self.status == 200 else None
        except ValueError:
            return None


class Opened:
    """An answer whose body is still to be read."""

    def __init__(self, response: "Response", deadline: Deadline) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._deadline = deadline

    def read(self, most_bytes: int) -> bytes:
        """The whole body, without a second copy in pieces; raises as `pieces` does."""
        whole = BytesIO()
        whole.writelines(self.pieces(most_bytes))
        return whole.getvalue()

    def pieces(self, most_bytes: int) -> Iterator[bytes]:
        """The decoded body; raises `TooLarge` before it yields more than `most_bytes`."""
        from service.sources.remote import connections

        try:
            _check_length(self._response, most_bytes)
            size = 0
            for chunk in self._response.iter_content(BUDGETS.piece_bytes):
                size += len(chunk)
                if size > most_bytes:
                    raise _too_large()
                yield chunk
        except connections.FAULTS as error:
            raise _failure(error, self._deadline) from None


def prepare() -> None:
    """Loads the HTTP library before a fork, for servers that will need it."""
    from service.sources.remote import connections  # noqa: F401


def ask(
    method: str,
    url: str,
    *,
    deadline: Deadline,
    most_bytes: int,
    params: Parameters = (),
    headers: Mapping[str, str] | None = None,
    data: Mapping[str, str] | bytes | None = None,
    redirects: bool = False,
) -> Answer:
    """The answer of the server at `url`, with any status.

    A redirect is never followed; it is an error unless `redirects` allows it as an answer. `data`
    is a form or the bytes of a body.

    Raises `Cut` and other `Unavailable` (`upstream_unreachable`, for a redirect
    `upstream_invalid_response`), `TimedOut` (`upstream_timeout`) and `TooLarge`
    (`upstream_too_large`).
    """
    options: dict[str, Any] = {"params": params, "data": data, "redirects": redirects}
    with opened(method, url, deadline=deadline, headers=headers, **options) as answer:
        return Answer(answer.status, answer.headers, answer.read(most_bytes))


def fetch_json(url: str, deadline: Deadline) -> Any:
    """The JSON that the server at `url` answers with status 200; None for any other answer."""
    return ask("GET", url, deadline=deadline, most_bytes=BUDGETS.body_bytes).json()


@contextmanager
def opened(
    method: str,
    url: str,
    *,
    deadline: Deadline,
    params: Parameters = (),
    headers: Mapping[str, str] | None = None,
    data: Mapping[str, str] | bytes | None = None,
    redirects: bool = False,
    accepts: Callable[[str], bool] | None = None,
) -> Iterator[Opened]:
    """The same with an unread body, which must be read inside the context.

    `accepts`, such as `is_public` of `service.networks`, checks the IP addresses of a host that
    somebody else names. Such a request uses no proxy.
    """
    from service.sources.remote import connections

    try:
        response = connections.send(
            deadline, method, url, headers, accepts=accepts, params=params, data=data
        )
    except connections.FAULTS as error:
        raise _failure(error, deadline) from None
    with response:
        if response.is_redirect and not redirects:
            raise _unreachable("redirects to another server", code="upstream_invalid_response")
        yield Opened(response, deadline)


def proxy_and_certificates(url: str) -> tuple[str | None, str]:
    """(the proxy for requests to `url`, the file of trusted certificates)."""
    from service.sources.remote import connections

    return connections.proxy_and_certificates(url)


def download(url: str, *, seconds: float, most_bytes: int) -> Iterator[bytes]:
    """The body at `url`, in pieces, decoded; the pieces together are at most `most_bytes`.

    The request starts with the first piece; from then on all must be read within
    `seconds`. Up to three redirects within the same origin are followed. Raises `NotFound` for
    a 404,  `TooLarge` (`upstream_too_large`), `TimedOut` (`upstream_timeout`) and, for
    everything else, `Unavailable` (`upstream_unreachable`).
    """
    from service.sources.remote import connections

    deadline = Deadline.after(seconds)
    try:
        with _followed(url, deadline) as response:
            yield from Opened(response, deadline).pieces(most_bytes)
    except connections.FAULTS as error:
        raise _failure(error, deadline) from error


@contextmanager
def _followed(url: str, deadline: Deadline) -> Iterator["Response"]:
    """The answer at `url` after redirects, unread; raises unless it is a plain 200."""
    from service.sources.remote import connections

    auth = connections.auth(url)
    for _ in range(BUDGETS.redirects + 1):
        response = connections.send(deadline, "GET", url, None, auth=auth)
        with response:
            if not response.is_redirect:
                if response.status_code in (404, 410):
                    raise NotFound("The upstream server has no such file. Check the request.")
                if response.status_code != 200:
                    raise _unreachable(f"returned status {response.status_code}")
                yield response
                return
            target = urljoin(url, response.headers["Location"])
        if origin(target) != origin(url):
            raise _unreachable("redirects to another server")
        url = target
    raise _unreachable("redirected the request too many times")


def _check_length(response: "Response", most_bytes: int) -> None:
    """Refuses a body by its declared length, before any of it is read."""
    if response.request.method == "HEAD":  # declares the length of a body it does not send
        return
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > most_bytes:
        raise _too_large()


def _failure(error: Exception, deadline: Deadline) -> EvidenceError:
    """The error for a network fault, without its address; counts it."""
    failure = _meaning(error, deadline)
    request_log.current().on_upstream_outcome(failure.code)
    return failure


def _meaning(error: Exception, deadline: Deadline) -> EvidenceError:
    from service.sources.remote import connections

    if deadline.expired() or isinstance(error, connections.TOO_LATE):
        return Late("An upstream server timed out. Try again later.", code="upstream_timeout")
    if isinstance(error, connections.UNTRUSTED):
        return _unreachable("has a certificate that Rung does not trust")
    if isinstance(error, connections.UNDECODABLE):
        return _unreachable("returned a body that cannot be decoded")
    if isinstance(error, connections.CUT_SHORT):
        return _unreachable("closed the connection before its response was complete", Cut)
    if isinstance(error, connections.UNCONNECTED):
        failure = _unreachable("refused or closed the connection", Cut)
        failure.why = f"does not answer: {_reason(error)}"
        return failure
    return _unreachable("cannot be reached")


def _reason(error: BaseException) -> str:
    """Why the connection failed, by the underlying system error."""
    under: BaseException | None = error
    while under is not None and not isinstance(under, (ConnectionRefusedError, socket.gaierror)):
        under = under.__cause__ or under.__context__
    if under is None:
        return "the connection was closed"
    return "no such host" if isinstance(under, socket.gaierror) else "connection refused"


def _unreachable(why: str, kind: type[Unreached] = Unreached, code: str | None = None) -> Unreached:
    error = kind(f"An upstream server {why}. Try again later.", code=code)
    error.why = why
    return error


def _too_large() -> TooLarge:
    return TooLarge(
        "An upstream server returned an answer that is too large. Request less data.",
        code="upstream_too_large",
    )


#: The end of the address of an endpoint of records.
_RECORDS = "/mcp"


def endpoint_problem(url: str, token: str) -> str | None:
    """The problem of a client with this token at an MCP endpoint, or None. It calls no tool."""
    deadline = Deadline.after(BUDGETS.start_seconds)
    try:
        answer = ask("GET", url, deadline=deadline, most_bytes=BUDGETS.body_bytes)
        if answer.status != 405 or "POST" not in answer.headers.get("Allow", ""):
            return f"There is no MCP endpoint at {url}: the URL returned status {answer.status}."
        if not token or not url.endswith(_RECORDS):
            return None
        schema = url.removesuffix(_RECORDS) + "/v1/schema"
        headers = {"Authorization": f"Bearer {token}"}
        most = BUDGETS.upstream_bytes
        answer = ask("GET", schema, deadline=deadline, most_bytes=most, headers=headers)
    except EvidenceError:
        return f"{url} does not answer."
    refused = answer.status in (401, 403)
    return f"{url} refused this token with status {answer.status}." if refused else None
