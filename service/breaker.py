"""A circuit breaker: blocks requests to a server that failed several times in a row."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evidence.errors import EvidenceError, TimedOut, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline


class Breaker:
    """Temporarily blocks requests to an upstream that failed several times in a row.

    After a pause, one request tries it: success allows all again, failure starts another pause.
    """

    def __init__(self, after: Callable[[float], Deadline] = Deadline.after) -> None:
        self._after = after
        self._lock = threading.Lock()
        self._failures = 0
        self._open_until: Deadline | None = None
        self._trying = False

    @property
    def is_open(self) -> bool:
        """True if requests to the upstream are blocked now."""
        until = self._open_until
        return until is not None and not until.expired()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Counts the outcome of the request inside; raises `Unavailable` if it is blocked."""
        trying = self._enter()
        try:
            yield
        except EvidenceError as error:
            self._count(failed=isinstance(error, (TimedOut, Unavailable)))
            raise
        except BaseException:
            if trying:  # no outcome: another request may try
                self._trying = False
            raise
        self._count(failed=False)

    def _enter(self) -> bool:
        """True if this request is the one that tries a blocked upstream."""
        with self._lock:
            if self._open_until is None:
                return False
            remaining = self._open_until.left()
            if remaining or self._trying:
                raise Unavailable(
                    "An upstream server is not responding, so requests to it are paused. Try "
                    "again in a few seconds.",
                    retry_after=max(1, math.ceil(remaining)),
                )
            self._trying = True
            return True

    def _count(self, *, failed: bool) -> None:
        with self._lock:
            self._failures = self._failures + 1 if failed else 0
            open_now = self._failures >= BUDGETS.breaker_failures
            self._open_until = self._after(BUDGETS.breaker_seconds) if open_now else None
            self._trying = False
