"""Requests to one resource server: retries, circuit breaker, JSON bodies and declared extensions.

All threads of a worker share the breakers and the bulkhead, which keep a failing or busy upstream
from occupying every thread. Each client request takes at most one permit of the bulkhead.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from evidence import errors
from evidence.errors import EvidenceError
from evidence.limits import BUDGETS
from evidence.work import Deadline, TooDeeplyNested, TooManyValues, parse_json
from service.breaker import Breaker
from service.pdpp.decode import object_of
from service.ports import SEARCH_EXTENSIONS
from service.sources.remote import outbound, remote_errors
from service.sources.remote.outbound import Answer, Opened

BUSY_SECONDS = 1


class Bulkhead(threading.BoundedSemaphore):
    """Permits for requests of a worker that wait on upstreams: all its threads except a few."""

    def __init__(self, threads: int) -> None:
        super().__init__(max(1, threads - BUDGETS.spare_threads))


class Permit:
    """The one permit of one request, held while any part of it waits on an upstream.

    Entering it raises `Unavailable` (`upstream_busy`) at once if none is free.
    """

    def __init__(self, bulkhead: Bulkhead | None = None) -> None:
        self._bulkhead = bulkhead
        self._lock = threading.Lock()
        self._waiting = 0

    def __enter__(self) -> "Permit":
        with self._lock:
            free = self._bulkhead is None or self._waiting or self._bulkhead.acquire(blocking=False)
            if not free:
                raise errors.Unavailable(
                    "Too many requests are waiting for upstream servers. Try again in a second.",
                    code="upstream_busy",
                    retry_after=BUSY_SECONDS,
                )
            self._waiting += 1
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._waiting -= 1
            if self._bulkhead is not None and not self._waiting:
                self._bulkhead.release()


#: Paths that may declare extensions: the metadata that PDPP requires, then the discovery index.
PATHS: Final = ("/.well-known/oauth-protected-resource", "/")


JSON = {"Accept": "application/json"}
PACKED = {"Accept-Encoding": "gzip"}
TRANSIENT = (429, 502, 503, 504)
RENEW = "Ask the owner to renew the grant of this source."

Pairs = Sequence[tuple[str, str]]


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


@dataclass(frozen=True, slots=True)
class Origin:
    """The address of a resource server.

    One for all requests, shared by threads. `url` has at most a path prefix, and no trailing slash.
    """

    url: str
    breaker: Breaker = field(default_factory=Breaker)
    pause: Callable[[float], None] = _pause
    #: The search extensions that it declared, and how long they are kept.
    declared: list[tuple[frozenset[str], Deadline]] = field(default_factory=list)

    @property
    def accepts(self) -> dict[str, str]:
        """The `Accept` headers. gzip is requested unless the URL is http: such servers are near."""
        return JSON if self.url.startswith("http:") else JSON | PACKED


@dataclass(frozen=True, slots=True)
class OriginClient:
    """One request's connection to an origin; its token is sent nowhere else.

    `own` is True if the token is the caller's, and not one stored for a member of a package.
    """

    origin: Origin
    token: str = field(repr=False)
    deadline: Deadline
    permit: Permit
    own: bool = True

    def read(
        self, path: str, params: Pairs, *, most_bytes: int = BUDGETS.upstream_bytes
    ) -> dict[str, Any]:
        """The JSON object at a path; raises an error if the server refuses."""
        answer = self.ask("GET", path, params, self.origin.accepts, most_bytes)
        if answer.status != 200:
            raise self.refusal(answer)
        try:
            body = parse_json(answer.body)
        except (TooManyValues, TooDeeplyNested) as excess:
            raise remote_errors.unbounded(excess) from None
        except orjson.JSONDecodeError:
            error = remote_errors.invalid("returned a body that is not JSON")
            raise remote_errors.noted(error, answer) from None
        if not isinstance(body, dict):
            raise remote_errors.invalid("returned JSON that is not an object")
        return body

    def ask(
        self, method: str, path: str, params: Pairs, headers: dict[str, str], most_bytes: int
    ) -> Answer:
        """The answer with any status; transient ones are retried."""
        self.deadline.check("waiting for an upstream server")
        with self.permit, self.origin.breaker.guard():
            for retries in reversed(range(BUDGETS.upstream_retries + 1)):
                try:
                    answer = outbound.ask(
                        method,
                        self.origin.url + path,
                        deadline=self.deadline,
                        most_bytes=most_bytes,
                        params=params,
                        headers=self._sent(headers),
                    )
                except outbound.Cut:
                    if not retries or not self._wait(BUDGETS.retry_pause_seconds):
                        raise
                    continue
                final = answer.status not in TRANSIENT or not retries
                if final or not self._wait(_retry_delay(answer)):
                    return answer
        raise AssertionError("the last attempt returns or raises")

    def search_extensions(self) -> frozenset[str]:
        """The supported `SEARCH_EXTENSIONS`; raises the error of the server."""
        declared = self.origin.declared
        if not declared or declared[0][1].expired():
            parameters = next(
                (candidates for path in PATHS if (candidates := self._declared(path))), []
            )
            names = frozenset(name for name in SEARCH_EXTENSIONS if name in parameters)
            declared[:] = [(names, Deadline.after(BUDGETS.token_seconds))]
        return declared[0][0]

    def _declared(self, path: str) -> list[Any]:
        """The search parameters that the document at `path` declares; empty if there is none."""
        try:
            body = self.read(path, [])
        except (errors.TimedOut, errors.RateLimited):
            raise
        except EvidenceError as error:
            if isinstance(error, errors.Unavailable) and error.code != "upstream_invalid_response":
                raise
            return []
        search = object_of(object_of(body, "capabilities"), "lexical_retrieval")
        parameters = search.get("parameters")
        return parameters if isinstance(parameters, list) else []

    def refusal(self, answer: Answer) -> EvidenceError:
        """The error of an answer, without the token, which some servers repeat.

        A stored token never causes a 401, because the caller cannot replace it.
        """
        error = remote_errors.failure(replace(answer, body=_without(answer.body, self.token)))
        if self.own or not isinstance(error, errors.Unauthenticated):
            return error
        return errors.Forbidden(error.message, code=error.code, hint=RENEW)

    def _sent(self, headers: dict[str, str]) -> dict[str, str]:
        return {**headers, "Authorization": f"Bearer {self.token}"}

    def _wait(self, seconds: float | None) -> bool:
        """Waits if the delay is short and leaves time for the request; returns True if it did."""
        most = min(BUDGETS.retry_wait_seconds, self.deadline.left() / 2)
        if seconds is None or seconds > most:
            return False
        self.origin.pause(seconds)
        return True

    @contextmanager
    def opened(self, path: str, params: Pairs, headers: dict[str, str]) -> Iterator[Opened]:
        """An answer whose body is read in pieces; it is not retried."""
        url, sent = self.origin.url + path, self._sent(headers)
        with self.permit, self.origin.breaker.guard(), outbound.opened(
            "GET", url, deadline=self.deadline, params=params, headers=sent
        ) as answer:
            yield answer


def _without(body: bytes, token: str) -> bytes:
    """The body without the token, in any spelling that JSON allows."""
    for form in {token, token.replace("/", "\\/")} - {""}:
        body = body.replace(form.encode(), b"(token)")
    return body


def _retry_delay(answer: Answer) -> float | None:
    """Seconds until a retry may succeed; None if unknown."""
    seconds = remote_errors.retry_after(answer.headers)
    if seconds is not None or answer.status == 429:
        return seconds
    return BUDGETS.retry_pause_seconds
