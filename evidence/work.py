"""Deadlines. The one place that reads the clock."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from evidence.errors import TimedOut


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time work must not pass. `clock` is injectable, in seconds, monotonic."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        return cls(clock() + seconds, clock)

    def expired(self) -> bool:
        return self.clock() >= self.at

    def check(self, doing: str) -> None:
        """Raises `TimedOut` (`deadline_exceeded`) once the deadline has passed."""
        if self.expired():
            raise TimedOut(f"The deadline passed while {doing}. Narrow the request and retry.")
