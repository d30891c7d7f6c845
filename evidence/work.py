"""Deadlines and the outcomes of work done item by item. The one place that reads the clock."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from evidence.errors import TimedOut

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time work must not pass. `clock` is injectable, in seconds, monotonic."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        return cls(clock() + seconds, clock)

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.clock())

    def expired(self) -> bool:
        return self.clock() >= self.at

    def check(self, doing: str) -> None:
        """Raises `TimedOut` (`deadline_exceeded`) once the deadline has passed."""
        if self.expired():
            raise TimedOut(f"The deadline passed while {doing}. Narrow the request and retry.")

    def sooner(self, seconds: float) -> "Deadline":
        """This deadline, or one `seconds` from now, whichever comes first."""
        return Deadline(min(self.at, self.clock() + seconds), self.clock)


@dataclass(frozen=True, slots=True)
class Done(Generic[Value]):
    value: Value


@dataclass(frozen=True, slots=True)
class Failed:
    error: Exception


@dataclass(frozen=True, slots=True)
class Late:
    """The item did not finish within the deadline."""


Outcome = Done[Any] | Failed | Late


def serial(function: Callable[[Item], Any], items: Iterable[Item]) -> list[Outcome]:
    """Runs `function` over `items` in order, in this thread; failures become outcomes."""
    outcomes: list[Outcome] = []
    for item in items:
        try:
            outcomes.append(Done(function(item)))
        except Exception as error:
            outcomes.append(Failed(error))
    return outcomes
