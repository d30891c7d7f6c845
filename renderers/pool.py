"""A thread pool that calls a function for many items, in order and within a deadline.

It waits for many sources at once, and limits the rendering of a heavy page: the page continues
without an item that takes too long. Threads share one interpreter, so rendering is no faster. The
threads are daemons, so unlike those of an executor they never delay the end of the process.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from queue import Full, Queue
from typing import Any, TypeVar

from evidence.limits import BUDGETS
from evidence.work import Deadline, Outcome, Overdue, attempt_elsewhere, serial

T = TypeVar("T")
R = TypeVar("R")

_thread_local = threading.local()


class WorkerPool:
    """At most `threads` threads of a process, started when needed; safe across forks."""

    def __init__(self, threads: int, name: str) -> None:
        self._most = threads
        self._name = name
        self._by_process: dict[int, _Threads] = {}

    def map(
        self, fn: Callable[[T], R], items: Sequence[T], deadline: Deadline, /
    ) -> list[Outcome[R]]:
        """Returns one outcome per item, in order. Waiting for a thread counts against the deadline.

        Fewer than two items, and items from inside a pool, run in this thread.
        """
        if len(items) < 2 or getattr(_thread_local, "is_worker", False):
            return serial(fn, items, deadline)
        threads, futures = self._threads(), [Future[Outcome[R]]() for _ in items]
        for future, item in zip(futures, items):
            work = partial(copy_context().run, attempt_elsewhere, fn, item)
            try:
                threads.queue(future, work, deadline.left())
            except Full:
                break
        wait(futures, deadline.left())
        for future in futures:
            future.cancel()  # unless it has begun
        return [
            Overdue() if future.cancelled() or not future.done() else future.result()
            for future in futures
        ]

    def _threads(self) -> "_Threads":
        """The threads of this process, because a fork does not copy its parent's."""
        pid = os.getpid()
        threads = self._by_process.get(pid)
        return threads or self._by_process.setdefault(pid, _Threads(self._most, self._name))


class _Threads:
    """Daemon threads over one bounded queue."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name, self._started = most, name, 0
        self._lock = threading.Lock()
        self._tasks = Queue[tuple[Future[Any], Callable[[], Any]]](BUDGETS.pool_queue_items)

    def queue(self, future: Future[Any], work: Callable[[], Any], seconds: float) -> None:
        """Queues the work; raises `Full` if the queue stays full for that long."""
        self._tasks.put((future, work), timeout=seconds)
        with self._lock:
            if self._started < self._most:
                self._started += 1
                name = f"{self._name}-{self._started}"
                threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        _thread_local.is_worker = True
        while True:
            future, work = self._tasks.get()
            if future.set_running_or_notify_cancel():
                future.set_result(work())
            del future, work  # releases their references before the next wait
