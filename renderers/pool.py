"""A thread pool that calls a function for many items, in order and within a deadline.

It waits for many sources at once, and it bounds the rendering of a heavy page: the page goes on
without the item that takes too long. Threads share one interpreter, so rendering is no faster.
The threads are daemons and never delay the end of the process.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from evidence.limits import BUDGETS
from evidence.work import Deadline, Late, Outcome, attempt, serial

T = TypeVar("T")
R = TypeVar("R")

_here = threading.local()


class WorkerPool:
    """At most `threads` threads of a process, made when they are needed; safe across forks."""

    def __init__(self, threads: int, name: str) -> None:
        self._most = threads
        self._name = name
        self._by_process: dict[int, _Threads] = {}

    def map(
        self, fn: Callable[[T], R], items: Sequence[T], deadline: Deadline, /
    ) -> list[Outcome[R]]:
        """One outcome per item, in order. Waiting for a thread counts against the deadline.

        Fewer than two items, and items from inside a pool, run in this thread.
        """
        if len(items) < 2 or getattr(_here, "is_worker", False):
            return serial(fn, items, deadline)
        threads, batch = self._threads(), _Batch[R](len(items))
        for number, item in enumerate(items):
            context = copy_context()

            def task(number: int = number, item: T = item, run: Any = context.run) -> None:
                if not batch.closed:
                    batch.put(number, run(attempt, fn, item))

            if not threads.queue(task, deadline.left()):
                break
        return batch.close(deadline.left())

    def _threads(self) -> "_Threads":
        """The threads of this process: a fork does not copy those of its parent."""
        pid = os.getpid()
        known = self._by_process.get(pid)
        return known or self._by_process.setdefault(pid, _Threads(self._most, self._name))


class _Threads:
    """Daemon threads over one bounded queue."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._tasks: deque[Callable[[], None]] = deque()
        self._started = self._idle = 0
        lock = threading.Lock()
        self._work, self._room = threading.Condition(lock), threading.Condition(lock)

    def queue(self, task: Callable[[], None], seconds: float) -> bool:
        """Queues the task; returns False if the queue stays full for that long."""
        with self._room:
            if not self._room.wait_for(self._has_room, seconds):
                return False
            self._tasks.append(task)
            self._work.notify()
            if len(self._tasks) > self._idle and self._started < self._most:
                self._started += 1
                name = f"{self._name}-{self._started}"
                threading.Thread(target=self._run, name=name, daemon=True).start()
        return True

    def _has_room(self) -> bool:
        return len(self._tasks) < BUDGETS.pool_queue_items

    def _run(self) -> None:
        _here.is_worker = True
        while True:
            with self._work:
                self._idle += 1
                self._work.wait_for(lambda: self._tasks)
                self._idle -= 1
                task = self._tasks.popleft()
                self._room.notify()
            task()
            del task  # releases what it references before the next wait


class _Batch(Generic[R]):
    """The outcomes of one `map`; results after it is closed are dropped."""

    def __init__(self, size: int) -> None:
        self._outcomes: list[Outcome[R]] = [Late()] * size
        self._missing = size
        self._changed = threading.Condition()
        self.closed = False

    def put(self, number: int, outcome: Outcome[R]) -> None:
        with self._changed:
            if not self.closed:
                self._outcomes[number] = outcome
                self._missing -= 1
                if not self._missing:
                    self._changed.notify()

    def close(self, seconds: float) -> list[Outcome[R]]:
        """Waits for all outcomes, at most `seconds`; missing ones are `Late`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._missing, seconds)
            self.closed = True
            return self._outcomes
