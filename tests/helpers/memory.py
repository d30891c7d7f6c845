"""Memory used by a piece of work."""

import os
import threading
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path


def peak_growth(work: Callable[[], object]) -> int:
    """The peak of the bytes that `work` allocates, beyond those allocated before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


class Watch:
    """The memory of another process during the block, in bytes of RssAnon.

    with Watch(process) as watch:
        ...
    watch.growth
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "Watch":
        self._before = self._most = anonymous(self._process)
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        """The largest sample minus the memory before."""
        return self._most - self._before

    def _look(self) -> None:
        while not self._over.wait(0.002):
            self._most = max(self._most, anonymous(self._process))


def peak_of(*command: str, environ: Mapping[str, str]) -> int:
    """Runs a command in its own process; returns its peak memory in bytes."""
    process = os.posix_spawn(command[0], command, environ)
    _, status, usage = os.wait4(process, 0)
    assert status == 0, command
    return usage.ru_maxrss * 1_024


def anonymous(process: int) -> int:
    """The RssAnon of a process, in bytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1_024
    raise LookupError("RssAnon")
