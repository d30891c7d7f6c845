"""Requests to one resource server: retries, a circuit breaker, and JSON bodies."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from evidence import json_text
from evidence.errors import EvidenceError, Forbidden, Unauthenticated
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.sources.remote import outbound, remote_errors
from service.sources.remote.breaker import Breaker, Permit
from service.sources.remote.declared import Declared
from service.sources.remote.outbound import Answer, Opened

JSON = {"Accept": "application/json"}
PACKED = {"Accept-Encoding": "gzip"}
TRANSIENT = (429, 502, 503, 504)
RENEW = "Ask the owner to renew the grant of this source."

Pairs = Sequence[tuple[str, str]]


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


@dataclass(frozen=True, slots=True)
class Origin:
    """The address of a resource server. One for all requests, shared by threads.

    `url` has no path of its own beyond a prefix, and no slash at its end.
    """

    url: str
    breaker: Breaker = field(default_factory=Breaker)
    pause: Callable[[float], None] = _pause
    declared: Declared = field(default_factory=Declared)

    @property
    def accepts(self) -> dict[str, str]:
        """The `Accept` headers. Bodies are compressed unless the server is near, without TLS."""
        return JSON if self.url.startswith("http:") else JSON | PACKED

    def line(self, token: str, deadline: Deadline, permit: Permit, *, own: bool = True) -> "Line":
        """One request's connection to this origin."""
        return Line(self, token, deadline, permit, own)


@dataclass(frozen=True, slots=True)
class Line:
    """One request's connection to an origin: its token is sent there and nowhere else.

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
        """The JSON object at a path; raises the error of a refusal."""
        answer = self.ask("GET", path, params, self.origin.accepts, most_bytes)
        if answer.status != 200:
            raise self.refusal(answer)
        try:
            body = json_text.parse(answer.body)
        except (json_text.TooManyValues, json_text.TooDeeplyNested) as found:
            raise remote_errors.unbounded(found) from None
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
        self.deadline.check("a server behind this one was asked")
        with self.permit, self.origin.breaker.guard():
            for left in reversed(range(BUDGETS.upstream_retries + 1)):
                try:
                    answer = self._ask_once(method, path, params, headers, most_bytes)
                except outbound.Cut:
                    if not left or not self._wait(BUDGETS.retry_pause_seconds):
                        raise
                    continue
                if (
                    answer.status not in TRANSIENT
                    or not left
                    or not self._wait(_retry_delay(answer))
                ):
                    return answer
        raise AssertionError("the last attempt returns or raises")

    def refusal(self, answer: Answer) -> EvidenceError:
        """The error of an answer, without the token, which some servers repeat.

        A stored token never causes a 401, because the caller cannot replace it.
        """
        error = remote_errors.failure(replace(answer, body=_without(answer.body, self.token)))
        if self.own or not isinstance(error, Unauthenticated):
            return error
        return Forbidden(error.message, code=error.code, hint=RENEW)

    def _ask_once(
        self, method: str, path: str, params: Pairs, headers: dict[str, str], most_bytes: int
    ) -> Answer:
        return outbound.ask(
            method,
            self.origin.url + path,
            deadline=self.deadline,
            most_bytes=most_bytes,
            params=params,
            headers={**headers, "Authorization": f"Bearer {self.token}"},
        )

    def _wait(self, seconds: float | None) -> bool:
        """Waits if the delay is short and leaves time for the request; returns True if it did."""
        if seconds is None or seconds > BUDGETS.retry_wait_seconds:
            return False
        if 2 * seconds > self.deadline.left():
            return False
        self.origin.pause(seconds)
        return True

    @contextmanager
    def opened(self, path: str, params: Pairs, headers: dict[str, str]) -> Iterator[Opened]:
        """An answer whose body is read in pieces; it is not retried."""
        sent = {**headers, "Authorization": f"Bearer {self.token}"}
        with self.permit, self.origin.breaker.guard():
            url = self.origin.url + path
            with outbound.opened(
                "GET", url, deadline=self.deadline, params=params, headers=sent
            ) as answer:
                yield answer


def _without(body: bytes, token: str) -> bytes:
    """The body with the token left out, as JSON may spell it."""
    for spelled in {token, token.replace("/", "\\/")} - {""}:
        body = body.replace(spelled.encode(), b"(token)")
    return body


def _retry_delay(answer: Answer) -> float | None:
    """Seconds until a retry may succeed; None if unknown."""
    seconds = remote_errors.retry_after(answer.headers)
    if seconds is not None or answer.status == 429:
        return seconds
    return BUDGETS.retry_pause_seconds
