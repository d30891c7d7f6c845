"""Real servers on a core of their own, and what the system knows about their workers."""

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
from service.settings import THREADS
from tests.helpers.server import ROOT, serving

RUNG, LIMIT = "service.app:create_app()", "bench.peers.limit:create_app()"
#: A limit that counts, and refuses nobody.
COUNTED = {"RUNG_RATE_LIMIT_TOKEN": "999999999/minute"}
#: Keeps no answers.
FORGETFUL = {"RUNG_ANSWER_CACHE_BYTES": "0"}

KIB = 1024
UTIME, STIME = 11, 12  # places in /proc/PID/stat after the name
CONFIG = "python:service.serving"
BOOT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """One server of one process. `boot` is seconds from its start to its first answer."""

    port: int
    worker: int
    boot: float

    def memory(self, kind: str = "RssAnon") -> int:
        """Bytes of the worker, as `/proc/PID/status` counts them."""
        return memory_of(self.worker, kind)

    def files(self) -> int:
        """How many files and sockets the worker has open."""
        return len(os.listdir(f"/proc/{self.worker}/fd"))

    def cpu_seconds(self) -> float:
        """What the worker has used of its core so far, in itself and in the system for it."""
        after_name = Path(f"/proc/{self.worker}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[UTIME : STIME + 1])) / os.sysconf("SC_CLK_TCK")


def memory_of(process: int, kind: str) -> int:
    """Bytes of a process, as `/proc/PID/status` counts them."""
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
    remembering: bool = False,
) -> Iterator[Server]:
    """Serves an application from one core, as Rung is served: threads and one worker.

    It keeps no answers, so that every request is work, unless it is to be `remembering`.
    """
    own, before = os.sched_getaffinity(0), _children(os.getpid())
    os.sched_setaffinity(0, {core})  # the server inherits it
    begun = time.perf_counter()
    env = {**({} if remembering else FORGETFUL), **COUNTED, **env, "RUNG_THREADS": str(threads)}
    with serving(app_import, env, workers=1, threads=threads, config=config, cwd=cwd) as url:
        boot = time.perf_counter() - begun
        os.sched_setaffinity(0, own)
        (arbiter,) = _children(os.getpid()) - before
        (worker,) = _children(arbiter)
        yield Server(int(url.rpartition(":")[2]), worker, boot)


@contextmanager
def rung(store: Path, core: int, *, remembering: bool = False, **env: str) -> Iterator[Server]:
    """Rung over a store, with its own defaults but for one worker and what `running` says."""
    env["RUNG_STORE"] = str(store.absolute())
    with running(RUNG, env, core=core, remembering=remembering) as server:
        yield server


@contextmanager
def limit(plain: Path, core: int) -> Iterator[Server]:
    """The limit endpoint over the file of the peers: a plain gunicorn with as many threads."""
    env = environments.environment(plain)
    with running(LIMIT, env, core=core, config=os.devnull) as server:
        yield server


@contextmanager
def peer(asked: Peer, plain: Path, core: int) -> Iterator[Server]:
    """A peer over the file, in its environment, on one core."""
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
    """Returns when it answers anything; raises `RuntimeError` with what it said where it ends."""
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
