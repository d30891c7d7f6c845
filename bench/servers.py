"""Real servers on a core of their own, and what the system knows about their workers."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.settings import THREADS
from tests.helpers.server import ROOT, serving

KIB = 1024
UTIME, STIME = 11, 12  # places in /proc/PID/stat after the name
CONFIG = "python:service.serving"


@dataclass(frozen=True, slots=True)
class Server:
    """One gunicorn with one worker. `boot` is seconds from its start to its first answer."""

    port: int
    worker: int
    boot: float

    def memory(self, kind: str = "RssAnon") -> int:
        """Bytes of the worker, as `/proc/PID/status` counts them."""
        for line in Path(f"/proc/{self.worker}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == kind:
                return int(value.split()[0]) * KIB
        raise LookupError(kind)

    def cpu_seconds(self) -> float:
        """What the worker has used of its core so far, in itself and in the system for it."""
        after_name = Path(f"/proc/{self.worker}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[UTIME : STIME + 1])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(
    app_import: str,
    env: Mapping[str, str],
    *,
    core: int,
    threads: int = THREADS,
    cwd: Path = ROOT,
) -> Iterator[Server]:
    """Serves an application from one core, as Rung is served: gthread and one worker."""
    own, before = os.sched_getaffinity(0), _children(os.getpid())
    os.sched_setaffinity(0, {core})  # the server inherits it
    begun = time.perf_counter()
    env = {**env, "RUNG_THREADS": str(threads)}
    with serving(app_import, env, workers=1, threads=threads, config=CONFIG, cwd=cwd) as url:
        boot = time.perf_counter() - begun
        os.sched_setaffinity(0, own)
        (arbiter,) = _children(os.getpid()) - before
        (worker,) = _children(arbiter)
        yield Server(int(url.rpartition(":")[2]), worker, boot)


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """This process on one core for a while."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def two_cores() -> tuple[int, int]:
    """(core for the server, core for the client): the same one where there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


def _children(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}
