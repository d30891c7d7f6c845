"""Deadlines, and applying one function to many items. The only module that reads the clock."""

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
    """A time by which work must end. `clock` is injectable: monotonic seconds."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        """Seconds until then; 0 once it has passed."""
        return max(0.0, self.at - self.clock())

    def share(self, part: float, *, most: float) -> "Deadline":
        """An earlier deadline: after `part` of the remaining time, at most `most` seconds."""
        return Deadline(self.clock() + min(most, part * self.left()), self.clock)

    def expired(self) -> bool:
        return self.clock() >= self.at

    def check(self, doing: str) -> None:
        """Raises `TimedOut` (`deadline_exceeded`) once the deadline has passed."""
        if self.expired():
            raise TimedOut(f"The deadline passed while {doing}. Narrow the request and retry.")


@dataclass(frozen=True, slots=True)
class Done(Generic[R]):
    """The call succeeded."""

    value: R


@dataclass(frozen=True, slots=True)
class Failed:
    """The call failed with an error that clients may see."""

    error: EvidenceError


@dataclass(frozen=True, slots=True)
class Late:
    """The call did not finish in time; its result is dropped."""


Outcome = Done[R] | Failed | Late


class Each(Protocol):
    """Applies a function to every item by the deadline; returns one outcome per item, in order."""

    def __call__(
        self, fn: Callable[[T], R], items: Sequence[T], deadline: Deadline, /
    ) -> list[Outcome[R]]: ...


def serial(fn: Callable[[T], R], items: Sequence[T], deadline: Deadline, /) -> list[Outcome[R]]:
    """Runs the calls in sequence, here; those not begun by the deadline are `Late`."""
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
