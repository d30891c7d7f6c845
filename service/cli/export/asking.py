"""Requests of an export, retried after transient failures."""

import threading
from collections.abc import Callable
from typing import TypeVar

from evidence.errors import EvidenceError, RateLimited, TimedOut, Unavailable
from evidence.limits import BUDGETS
from service.cli.output import say
from service.operations.base import Session
from service.ports import ResourceServer

T = TypeVar("T")

#: Codes of `Unavailable` for transient failures.
TRANSIENT = ("upstream_unreachable", "upstream_busy")


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


class Asker:
    """Sends many requests to a source. `open` returns a session for one request."""

    def __init__(
        self, open: Callable[[], Session], pause: Callable[[float], None] = _pause
    ) -> None:
        self._open = open
        self._pause = pause

    def ask(self, question: Callable[[ResourceServer], T]) -> T:
        """The answer; raises permanent errors, and transient ones that last too long."""
        for tried in range(BUDGETS.export_tries):
            try:
                return question(self._open().rs)
            except (RateLimited, Unavailable, TimedOut) as error:
                seconds = self._wait(error, tried)
                if seconds is None:
                    raise
                if seconds >= 1:
                    say(f"{error.message} Retrying in {seconds:g} seconds.")
                self._pause(seconds)
        raise AssertionError("the last attempt returns or raises")

    def _wait(self, error: EvidenceError, tried: int) -> float | None:
        """Seconds to wait before a retry; None if a retry is not worthwhile."""
        if tried == BUDGETS.export_tries - 1:
            return None
        if isinstance(error, Unavailable) and error.code not in TRANSIENT:
            return None
        wait = error.details.get("retry_after")
        seconds = float(wait) if wait is not None else BUDGETS.export_pause_seconds * 2**tried
        return seconds if seconds <= BUDGETS.export_wait_seconds else None
