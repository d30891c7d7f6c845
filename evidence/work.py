"""Deadlines, and doing one thing for many items. The one place that reads the clock."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from traceback import extract_tb
from typing import Generic, Protocol, TypeVar

from evidence.errors import EvidenceError, Internal, TimedOut

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time work must not pass. `clock` is injectable, in seconds, monotonic."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        """Seconds until then; 0 once it has passed."""
        return max(0.0, self.at - self.clock())

    def share(self, part: float, *, most: float) -> "Deadline":
        """An earlier deadline: after `part` of the time left, and after `most` seconds at most."""
        return Deadline(self.clock() + min(most, part * self.left()), self.clock)

    def expired(self) -> bool:
        return self.clock() >= self.at

    def check(self, doing: str) -> None:
        """Raises `TimedOut` (`deadline_exceeded`) once the deadline has passed."""
        if self.expired():
            raise TimedOut(f"The deadline passed while {doing}. Narrow the request and retry.")


@dataclass(frozen=True, slots=True)
class Done(Generic[R]):
    """It worked."""

    value: R


@dataclass(frozen=True, slots=True)
class Failed:
    """The call failed with an error that a client may see."""

    error: EvidenceError


@dataclass(frozen=True, slots=True)
class Late:
    """The call did not finish in time; its result is dropped."""


Outcome = Done[R] | Failed | Late


class Each(Protocol):
    """Does one thing for every item: one outcome per item, in their order, by the deadline."""

    def __call__(
        self, fn: Callable[[T], R], items: Sequence[T], deadline: Deadline, /
    ) -> list[Outcome[R]]: ...


def serial(fn: Callable[[T], R], items: Sequence[T], deadline: Deadline, /) -> list[Outcome[R]]:
    """One after the other, here; what has not begun by the deadline is `Late`."""
    return [Late() if deadline.expired() else attempt(fn, item) for item in items]


def attempt(fn: Callable[[T], R], item: T) -> Outcome[R]:
    """The outcome of one call; an unexpected exception is logged without its data."""
    try:
        return Done(fn(item))
    except EvidenceError as error:
        return Failed(error)
    except Exception as error:
        place = extract_tb(error.__traceback__)[-1]
        where = f"{place.filename}:{place.lineno}"
        logger.error("%s in %s at %s", type(error).__name__, place.name, where)
        return Failed(Internal())
