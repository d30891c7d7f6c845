"""Promises: values that a snapshot reads when needed; a remote database sends several at once.

A caller makes all promises that it can, then reads them. The first read makes a far engine send
every statement that waits. A near engine runs a statement when its promise is read, so that one
that is never read costs nothing. A caller whose next statement depends on a value is a coroutine:
it awaits its promises, and several of them that are gathered wait together.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from functools import partial, wraps
from types import coroutine
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def _never() -> bool:
    return False


class Later(Generic[T]):
    """A promise of a value: `read` returns it, `waits` whether that waits for an engine."""

    __slots__ = ("_read", "_value", "_waits")

    def __init__(self, read: Callable[[], T], waits: Callable[[], bool] = _never) -> None:
        self._read: Callable[[], T] | None = read
        self._waits = waits

    def get(self) -> T:
        """The value, which is read once; raises what reading it raises."""
        if self._read is not None:
            self._value, self._read = self._read(), None
        return self._value

    def then(self, function: Callable[[T], R]) -> "Later[R]":
        """A promise of what a function makes of the value."""
        return Later(lambda: function(self.get()), self.waits)

    def waits(self) -> bool:
        """Whether reading the value waits for an engine."""
        return self._read is not None and self._waits()

    def __await__(self) -> Generator[None, None, T]:
        if self.waits():
            yield
        return self.get()


def ready(value: T) -> Later[T]:
    """A promise of a value that is there already."""
    return Later(lambda: value)


def promised(function: Callable[P, T]) -> Callable[P, Later[T]]:
    """A function that promises what this one returns, and calls it when the promise is read."""

    @wraps(function)
    def promise(*args: P.args, **options: P.kwargs) -> Later[T]:
        return Later(partial(function, *args, **options))

    return promise


def all_of(promises: Iterable[Later[T]]) -> Later[list[T]]:
    """One promise of the values of several."""
    several = list(promises)
    return Later(
        lambda: [promise.get() for promise in several],
        lambda: any(promise.waits() for promise in several),
    )


@coroutine
def _pause() -> Generator[None, None, None]:
    yield


async def gather(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """The values of coroutines and promises that wait together, in their order."""
    running = {number: each.__await__() for number, each in enumerate(awaitables)}
    values = dict[int, T]()
    try:
        while True:
            for number, steps in list(running.items()):
                try:
                    next(steps)
                except StopIteration as end:
                    values[number] = end.value
                    del running[number]
            if not running:
                return [values[number] for number in sorted(values)]
            await _pause()
    finally:
        for steps in running.values():
            steps.close()


def run(awaitable: Awaitable[T]) -> T:
    """The value of a coroutine."""
    steps = awaitable.__await__()
    try:
        while True:
            next(steps)
    except StopIteration as end:
        value: T = end.value
        return value


def iterate(values: AsyncIterator[T]) -> Iterator[T]:
    """The values of an asynchronous iterator, each when it is asked for."""
    while True:
        try:
            yield run(anext(values))
        except StopAsyncIteration:
            return
