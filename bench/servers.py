"""Real servers on their own core, and what the system reports about their workers."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from bench.load import HOST
from bench.peers import environments
from bench.peers.environments import Peer
from service.place import Place, spelled
from service.settings import THREADS
from tests.helpers.server import ROOT, serving

RUNG, LIMIT = "service.app:create_app()", "bench.peers.limit:create_app()"
#: Limits that count requests and work, and refuse none.
COUNTED = {"RUNG_RATE_LIMIT_TOKEN": "999999999/minute", "RUNG_WORK_SECONDS": "999999999"}
#: Search by words, also where a model is installed.
BY_WORDS = {"RUNG_SEMANTIC": "off"}
#: Turns the answer cache off.
UNCACHED = {"RUNG_ANSWER_CACHE_BYTES": "0"}

KIB = 1024
UTIME, STIME = 11, 12  # places in /proc/PID/stat after the name
CONFIG = "python:service.serving"
BOOT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server of one process. `boot` is the seconds from its start to its first answer."""

    port: int
    worker: int
    boot: float

    def memory(self, kind: str = "RssAnon") -> int:
        """Bytes of the worker, as `/proc/PID/status` reports them."""
        return memory_of(self.worker, kind)

    def files(self) -> int:
        """The number of files and sockets that the worker has open."""
        return len(os.listdir(f"/proc/{self.worker}/fd"))

    def cpu_seconds(self) -> float:
        """The user and system time of the worker so far."""
        after_name = Path(f"/proc/{self.worker}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[UTIME : STIME + 1])) / os.sysconf("SC_CLK_TCK")


def memory_of(process: int, kind: str) -> int:
    """Bytes of a process, as `/proc/PID/status` reports them."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == kind:
            return int(value.split()[0]) * KIB
    raise LookupError(kind)


@contextmanager
def running(
    app_import: str,
    env: Mapping[str, str],
    *,
    core: int,
    threads: int = THREADS,
    cwd: Path = ROOT,
    config: str = CONFIG,
    cached: bool = False,
) -> Iterator[Server]:
    """Serves an application from one core, as Rung is served: one worker with threads.

    The answer cache is off, so that every request is work, unless `cached`. Search is by words.
    """
    own, before = os.sched_getaffinity(0), _children(os.getpid())
    os.sched_setaffinity(0, {core})  # the server inherits it
    begun = time.perf_counter()
    env = {
        **({} if cached else UNCACHED),
        **COUNTED,
        **BY_WORDS,
        **env,
        "RUNG_THREADS": str(threads),
    }
    with serving(app_import, env, workers=1, threads=threads, config=config, cwd=cwd) as url:
        boot = time.perf_counter() - begun
        os.sched_setaffinity(0, own)
        (arbiter,) = _children(os.getpid()) - before
        (worker,) = (child for child in _children(arbiter) if not _builds_vectors(child))
        yield Server(int(url.rpartition(":")[2]), worker, boot)


@contextmanager
def rung(store: Place, core: int, *, cached: bool = False, **env: str) -> Iterator[Server]:
    """Serves Rung over a store, with its defaults except for what `running` sets."""
    env = {"RUNG_STORE": spelled(store.absolute()), **env}
    with running(RUNG, env, core=core, cached=cached) as server:
        yield server


@contextmanager
def limit(plain: Path, core: int) -> Iterator[Server]:
    """Serves the limit endpoint over the peers' file: a plain gunicorn with as many threads."""
    env = environments.environment(plain)
    with running(LIMIT, env, core=core, config=os.devnull) as server:
        yield server


@contextmanager
def peer(asked: Peer, plain: Path, core: int) -> Iterator[Server]:
    """Serves a peer over the file, in its environment, on one core."""
    asked.prepare()
    with TemporaryFile() as log:
        with socket.create_server((HOST, 0)) as listener, pinned(core):  # the server inherits both
            port = listener.getsockname()[1]
            begun = time.perf_counter()
            process = subprocess.Popen(
                asked.command(listener.fileno()),
                env=environments.environment(plain, asked.stop_words),
                cwd=ROOT,
                pass_fds=[listener.fileno()],
                stdout=log,
                stderr=log,
            )
        try:
            _await_answer(port, asked, log)
            yield Server(port, process.pid, time.perf_counter() - begun)
        finally:
            process.terminate()
            process.wait()


def _await_answer(port: int, asked: Peer, log: IO[bytes]) -> None:
    """Returns when the peer answers. Raises `RuntimeError` with its log if it does not."""
    try:
        with socket.create_connection((HOST, port), timeout=BOOT_SECONDS) as connection:
            connection.sendall(b"GET /none HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            if connection.recv(1):
                return
    except OSError:
        pass
    log.seek(0)
    raise RuntimeError(f"{asked.title} does not start: {log.read().decode(errors='replace')}")


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Pins this process to one core during the block."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def two_cores() -> tuple[int, int]:
    """(core for the server, core for the client); the same one if there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


def _builds_vectors(pid: int) -> bool:
    return b"vectors" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def _children(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}
