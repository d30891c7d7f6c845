"""Keeps a failing or busy upstream from occupying every thread.

Both are made before workers fork, and used by all threads of one.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evidence.errors import EvidenceError, TimedOut, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline

BUSY_SECONDS = 1


class Breaker:
    """Blocks requests to an upstream that failed several times in a row, for a while.

    Then one request tries it; if it succeeds, all are allowed again. `after` makes deadlines.
    """

    def __init__(self, after: Callable[[float], Deadline] = Deadline.after) -> None:
        self._after = after
        self._lock = threading.Lock()
        self._failures = 0
        self._rest: Deadline | None = None
        self._trying = False

    @property
    def resting(self) -> bool:
        """True if requests to the upstream are blocked now."""
        rest = self._rest
        return rest is not None and not rest.expired()

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
            if self._rest is None:
                return False
            left = self._rest.left()
            if left or self._trying:
                raise Unavailable(
                    "An upstream server does not answer, so requests to it are paused. Try "
                    "again in a few seconds.",
                    retry_after=max(1, math.ceil(left)),
                )
            self._trying = True
            return True

    def _count(self, *, failed: bool) -> None:
        with self._lock:
            self._failures = self._failures + 1 if failed else 0
            open_now = self._failures >= BUDGETS.breaker_failures
            self._rest = self._after(BUDGETS.breaker_seconds) if open_now else None
            self._trying = False


class Bulkhead:
    """Permits for requests of a worker that wait on upstreams: all its threads but a few."""

    def __init__(self, threads: int) -> None:
        self._free = threading.BoundedSemaphore(max(1, threads - BUDGETS.spare_threads))

    def take(self) -> None:
        """Takes a permit; raises `Unavailable` (`upstream_busy`) at once if none is free."""
        if not self._free.acquire(blocking=False):
            raise Unavailable(
                "Too many requests are waiting for upstream servers. Try again in a second.",
                code="upstream_busy",
                retry_after=BUSY_SECONDS,
            )

    def give(self) -> None:
        """Frees a permit."""
        self._free.release()


class Permit:
    """The one permit of one request, held while any part of it waits on an upstream."""

    def __init__(self, bulkhead: Bulkhead | None = None) -> None:
        self._bulkhead = bulkhead
        self._lock = threading.Lock()
        self._waiting = 0

    def __enter__(self) -> "Permit":
        with self._lock:
            if self._bulkhead is not None and not self._waiting:
                self._bulkhead.take()
            self._waiting += 1
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._waiting -= 1
            if self._bulkhead is not None and not self._waiting:
                self._bulkhead.give()
