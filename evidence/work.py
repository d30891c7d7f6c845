"""Limits on work: deadlines, CPU time, work on many items, and JSON from other sources.

Deadlines use the monotonic clock. A request has one deadline, counted from its arrival: `begin`
sets it for the thread of the request, pools copy it to theirs, and loops of Python call `check`.
`Spending` counts the CPU time of all these threads, and `spend` the time of other processes.
`parse_json` enforces the limits on JSON from other sources.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import accumulate
from traceback import extract_tb
from typing import Any, Generic, Protocol, TypeVar

import orjson

from evidence.errors import EvidenceError, Internal, TimedOut
from evidence.limits import BUDGETS

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S", bound=Sequence[Any])


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
        if self.clock() >= self.at:
            raise TimedOut(f"Rung ran out of time while {doing}. Narrow the request and retry.")


class Spending:
    """The CPU seconds that a request uses, in all its threads, and in statements of a database.

    Created by the thread of the request, which also ends it.
    """

    def __init__(self) -> None:
        self._began, self._elsewhere = time.thread_time(), 0.0
        self._charge: Callable[[float], None] | None = None
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Adds seconds of another thread or process; those after the end are charged at once."""
        with self._lock:
            charge = self._charge
            if charge is None:
                self._elsewhere += seconds
        if charge is not None:
            charge(seconds)

    def so_far(self) -> float:
        """The seconds until now."""
        return time.thread_time() - self._began + self._elsewhere

    def end(self, charge: Callable[[float], None]) -> None:
        """Charges the seconds until now, and whatever is added later."""
        with self._lock:
            self._charge = charge
        charge(self.so_far())


#: The arrival of the request of this thread, and the deadline of the work of this thread.
_arrival: ContextVar[Deadline | None] = ContextVar("arrival", default=None)
_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
_spending: ContextVar[Spending | None] = ContextVar("spending", default=None)
_pause: ContextVar[Callable[[], None]] = ContextVar("pause")


def begin(
    seconds: float, arrival: float | None = None, clock: Callable[[], float] = time.monotonic
) -> Spending:
    """Begins a request of this thread, which has `seconds` from its arrival, by default now."""
    _arrival.set(Deadline(clock() if arrival is None else arrival, clock))
    request_deadline(seconds)
    spending = Spending()
    _spending.set(spending)
    return spending


def end() -> None:
    """Ends the request of this thread: its work has no deadline from now on."""
    for variable in (_arrival, _deadline, _spending):
        variable.set(None)
    _pause.set(lambda: None)


def spent() -> float:
    """The CPU seconds that the request of this thread has used; 0 outside a request."""
    spending = _spending.get()
    return spending.so_far() if spending else 0.0


def spend(seconds: float) -> None:
    """Adds the seconds of another thread or process to the request that this thread works for."""
    spending = _spending.get()
    if spending is not None:
        spending.add(seconds)


def allow_pauses(pause: Callable[[], None]) -> None:
    """Lets `pause` be called between the parts of the request of this thread."""
    _pause.set(pause)


def pause() -> None:
    """Lets other requests go first, between two parts of a request."""
    _pause.get(lambda: None)()


def request_deadline(seconds: float) -> Deadline:
    """Gives the request of this thread `seconds` from its arrival; returns that deadline.

    Outside a request it is counted from now, and limits only those who get it.
    """
    arrival = _arrival.get()
    if arrival is None:
        return Deadline.after(seconds)
    deadline = Deadline(arrival.at + seconds, arrival.clock)
    _deadline.set(deadline)
    return deadline


@contextmanager
def waiting() -> Iterator[None]:
    """Adds the time inside that this thread waits, because another process works for it."""
    began = time.monotonic() - time.thread_time()
    try:
        yield
    finally:
        spend(time.monotonic() - time.thread_time() - began)


@contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """Limits the work inside to `seconds`, and to the deadline outside."""
    outside = _deadline.get()
    deadline = outside.share(1, most=seconds) if outside else Deadline.after(seconds)
    _deadline.set(deadline)
    try:
        yield deadline
    finally:
        _deadline.set(outside)


def left(seconds: float) -> float:
    """The seconds until the deadline of this thread; `seconds` without one."""
    deadline = _deadline.get()
    return seconds if deadline is None else deadline.left()


def check(doing: str) -> None:
    """Raises `TimedOut` once the deadline of this thread has passed."""
    deadline = _deadline.get()
    if deadline is not None:
        deadline.check(doing)


def checked(items: Iterable[T], doing: str, every: int = 1) -> Iterator[T]:
    """The items; calls `check` before the first and before each `every`-th one."""
    for number, item in enumerate(items):
        if number % every == 0:
            check(doing)
        yield item


@dataclass(frozen=True, slots=True)
class Done(Generic[R]):
    """The call succeeded."""

    value: R


@dataclass(frozen=True, slots=True)
class Failed:
    """The call failed with an error that clients may see."""

    error: EvidenceError


@dataclass(frozen=True, slots=True)
class Overdue:
    """The call did not finish in time; its result is dropped."""


Outcome = Done[R] | Failed | Overdue


class Each(Protocol):
    """Applies a function to every item by the deadline; returns one outcome per item, in order."""

    def __call__(
        self, fn: Callable[[T], R], items: Sequence[T], deadline: Deadline, /
    ) -> list[Outcome[R]]: ...


def serial(fn: Callable[[T], R], items: Sequence[T], deadline: Deadline, /) -> list[Outcome[R]]:
    """Runs the calls in sequence, here; those not begun by the deadline are `Overdue`."""
    return [Overdue() if deadline.expired() else attempt(fn, item) for item in items]


def attempt_elsewhere(fn: Callable[[T], R], item: T) -> Outcome[R]:
    """The same in a thread of a pool, whose CPU time counts for the request."""
    began = time.thread_time()
    try:
        return attempt(fn, item)
    finally:
        spend(time.thread_time() - began)


def attempt(fn: Callable[[T], R], item: T) -> Outcome[R]:
    """The outcome of one call; an unexpected exception is logged without its data."""
    try:
        return Done(fn(item))
    except EvidenceError as error:
        return Failed(error)
    except Exception as error:
        frame = extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
        logger.error("%s in %s at %s", type(error).__name__, frame.name, where)
        return Failed(Internal())


#: Every byte except quotes and structural characters: brackets, commas and colons.
_PLAIN_BYTES = bytes(set(range(256)) - set(b'",:[]{}'))
#: Brackets as steps: one level down, one level up.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


class TooManyValues(ValueError):
    """The JSON has more structural characters than the limit, which the message states."""


class TooDeeplyNested(ValueError):
    """The JSON is nested more deeply than the limit, which the message states."""


def portions(values: S, size: int) -> Iterator[S]:
    """A sequence in portions of `size` values; the last may be shorter."""
    for start in range(0, len(values), size):
        yield values[start : start + size]  # type: ignore[misc]  # a slice has the same type


def parse_json(raw: bytes) -> Any:
    """The value of a JSON text from another source, within the values and levels of `BUDGETS`.

    A value of two bytes takes a hundred in memory, so a limit on bytes alone is not enough. Raises
    `TooManyValues` and `TooDeeplyNested`, before any of it is parsed, and `orjson.JSONDecodeError`:
    each is a `ValueError`.
    """
    _check_structure(raw)
    return orjson.loads(raw)


def _check_structure(raw: bytes) -> None:
    """Raises if the structural characters outside strings are too many or nested too deeply."""
    count = level = 0
    inside, carried = False, b""
    for start in range(0, len(raw), BUDGETS.piece_bytes):
        chunk = carried + raw[start : start + BUDGETS.piece_bytes]
        # A final backslash stays with the character it escapes.
        carried = b"\\" if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2 else b""
        chunk = chunk[: len(chunk) - len(carried)].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = chunk.translate(None, _PLAIN_BYTES).split(b'"')
        structure = b"".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0
        count += len(structure)
        if count > BUDGETS.json_structure:
            most = BUDGETS.json_structure
            raise TooManyValues(f"has more than {most} brackets, commas and colons")
        level = _level_after(structure, level)


def _level_after(structure: bytes, level: int) -> int:
    """The level after some structural characters; raises `TooDeeplyNested` if one is too deep."""
    steps = structure.translate(_STEPS, b",:")
    downs = steps.count(b"\x01")
    if level + downs > BUDGETS.json_levels:
        if max(accumulate(memoryview(steps).cast("b"), initial=level)) > BUDGETS.json_levels:
            raise TooDeeplyNested(f"is nested more than {BUDGETS.json_levels} levels deep")
    return level + 2 * downs - len(steps)
