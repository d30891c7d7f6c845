"""Closes connections at their deadlines, whichever thread waits for them.

Timeouts of a socket begin anew with every byte; a watch does not.
"""

import os
import socket
import threading
from contextlib import suppress

from evidence.work import Deadline


class Watch:
    """The deadline of one request, and the connection it uses now."""

    def __init__(self, deadline: Deadline) -> None:
        self.fired = False
        self.deadline = deadline
        self._line: socket.socket | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> "Watch":
        self._watchman = _watchman
        self._watchman.add(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self._watchman.remove(self)
        self._take(None)

    @property
    def over(self) -> bool:
        return self.fired or self.deadline.expired()

    def left(self) -> float:
        """Seconds until the deadline, above zero; raises `TimeoutError` where none are left."""
        left = self.deadline.left()
        if self.fired or not left:
            raise TimeoutError
        return left

    def keep(self, line: socket.socket) -> None:
        """Watches this connection from now on. A duplicate survives the wrapping in TLS."""
        self._take(socket.socket(fileno=os.dup(line.fileno())))
        self.left()

    def fire(self) -> None:
        """Cuts the connection."""
        with self._lock:
            self.fired = True
            if self._line is not None:
                with suppress(OSError):
                    self._line.shutdown(socket.SHUT_RDWR)

    def _take(self, line: socket.socket | None) -> None:
        with self._lock:
            before, self._line = self._line, line
        if before is not None:
            before.close()


class _Watchman:
    """Fires the watches of a process when their time comes, in one thread for all of them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watches: set[Watch] = set()
        self._wakes: Deadline | None = None
        self._started = False

    def add(self, watch: Watch) -> None:
        with self._changed:
            self._watches.add(watch)
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="deadline enforcer", daemon=True).start()
            elif self._wakes is None or watch.deadline.left() < self._wakes.left():
                self._changed.notify()

    def remove(self, watch: Watch) -> None:
        with self._changed:
            self._watches.discard(watch)

    def _run(self) -> None:
        with self._changed:
            while True:
                for watch in [found for found in self._watches if found.over]:
                    self._watches.discard(watch)
                    watch.fire()
                left = min((watch.deadline.left() for watch in self._watches), default=None)
                self._wakes = None if left is None else Deadline.after(left)
                self._changed.wait(left)


def _start_over() -> None:
    """A forked process has no deadline enforcer yet."""
    global _watchman
    _watchman = _Watchman()


_watchman = _Watchman()
os.register_at_fork(after_in_child=_start_over)
