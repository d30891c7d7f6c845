"""The gunicorn configuration of the service; settings come from the environment.

It also sets the memory of a worker: one heap, and pages shared with the parent process. It writes
only to the temporary folder and memory, and needs no home folder.
"""

import atexit
import ctypes
import gc
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from evidence.limits import BUDGETS
from service import settings
from service.meaning.opening import encoder_of
from service.place import file_of

# Options of mallopt, in glibc's malloc.h.
_ARENAS_MAX = -8
_MMAP_THRESHOLD = -3
#: Blocks of this size use mmap, so that free() returns them to the system.
_APART_BYTES = 65_536


def spare() -> None:
    """Makes all threads of this process and its children share one heap; large blocks use mmap.

    Otherwise each thread has its own heap, which stays as large as its largest answer;
    threads of a worker take turns in Python anyway. Large blocks would leave holes that fit only
    smaller ones. Does nothing without glibc.
    """
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(_ARENAS_MAX, 1)
        libc.mallopt(_MMAP_THRESHOLD, _APART_BYTES)
    except (AttributeError, OSError):
        return


def alternate() -> None:
    """Lets threads change places five times as often as Python does by itself.

    A request over a store waits for other threads after each of its statements.
    """
    sys.setswitchinterval(0.001)


def settle() -> None:
    """Excludes all current objects from garbage collection, so that forked workers share them."""
    gc.collect()
    gc.freeze()


try:
    deployment = settings.load()
except settings.SettingsError as error:
    sys.exit(f"rung cannot start:\n{error}")

#: The folder of worker heartbeats: on a disk, a slow write would look like a hung worker.
MEMORY = "/dev/shm"
#: Keep-alive connections have this long to end after the drain.
LINGER_SECONDS = 2


def _connections() -> int:
    """Connections of one worker: at most half of the files that a process may open."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    unlimited = most == resource.RLIM_INFINITY
    return BUDGETS.connections if unlimited else min(BUDGETS.connections, most // 2)


bind = f"0.0.0.0:{deployment.port}"
worker_class = "service.running.draining.DrainingWorker"
logger_class = "service.running.noted.GunicornLog"
workers = deployment.workers
threads = deployment.threads
# Above all our deadlines, below the router's.
timeout = int(BUDGETS.router_seconds) - 2
graceful_timeout = deployment.drain_seconds + int(BUDGETS.request_seconds) + LINGER_SECONDS
keepalive = int(BUDGETS.idle_seconds)
worker_connections = _connections()
preload_app = True
limit_request_line = 8190
accesslog = None
errorlog = "-"
forwarded_allow_ips = "127.0.0.1"
control_socket_disable = True
worker_tmp_dir = MEMORY if os.access(MEMORY, os.W_OK) else None


def _counts() -> str | None:
    """A new folder for the shared counts of workers; None if it cannot be created.

    It must be set before any count, because the library reads it on import.
    """
    if deployment.metrics == "off":
        return None
    try:
        folder = tempfile.mkdtemp(prefix="rung-metrics-")
    except OSError:
        return None
    settings.announce(PROMETHEUS_MULTIPROC_DIR=folder)
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: str, owner: int) -> None:
    """Removes the folder, but only in the process that created it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


counts = _counts()
spare()
alternate()


def on_starting(server: Any) -> None:
    """Makes the user that workers run as the owner of the folder of counts."""
    if counts is not None and server.cfg.uid != os.geteuid():
        os.chown(counts, server.cfg.uid, server.cfg.gid)


#: The sender of events and the builder of vectors. Each ends when its standard input is closed.
helpers: "list[subprocess.Popen[bytes]]" = []


def when_ready(server: Any) -> None:
    """Starts the sender of events if there is a webhook, and the builder of vectors.

    A read-only store has neither.
    """
    if deployment.webhook_url and not deployment.store_url:
        _start(server, "service.webhook")
    _start_builder(server)


def _start_builder(server: Any) -> None:
    """Starts the builder of vectors, unless search by meaning is off.

    A database has a builder of its own, because several servers may share it.
    """
    file = file_of(deployment.store)
    has_papers = deployment.papers_db is not None and deployment.papers_url is None
    if file is None or encoder_of(deployment) is None or not (has_papers or file.exists()):
        return
    written = [path for path in (file, file.parent) if path.exists()]
    if deployment.store_url or not all(os.access(path, os.W_OK) for path in written):
        server.log.info("The store is read-only, so no vectors are built.")
        return
    _start(server, "service", "vectors", "build", "--watch", "--store", str(file))


def _start(server: Any, *words: str) -> None:
    """Starts a Python module with its arguments, as the user of the workers."""
    own = server.cfg.uid == os.geteuid()
    user = {} if own else {"user": server.cfg.uid, "group": server.cfg.gid}
    command = [sys.executable, "-m", *words]
    helpers.append(subprocess.Popen(command, stdin=subprocess.PIPE, **user))


def on_exit(server: Any) -> None:
    """Ends the sender of events and the builder of vectors."""
    for process in helpers:
        process.terminate()


def pre_fork(server: Any, worker: Any) -> None:
    """Freezes all loaded objects, so that workers share their memory."""
    settle()


def post_worker_init(worker: Any) -> None:
    """Opens the snapshot before the first request, because a bad file could replace it meanwhile.

    Starts counting the uses of grants.
    """
    services = worker.app.callable.extensions["rung"]
    if services.papers is not None:
        services.papers.status()
    if services.store is not None:
        services.store.activity.start()


def worker_exit(server: Any, worker: Any) -> None:
    """Writes the last counts of uses."""
    store = worker.app.callable and worker.app.callable.extensions["rung"].store
    if store is not None:
        store.activity.stop()


def child_exit(server: Any, worker: Any) -> None:
    """Removes the live gauges of a worker that ended."""
    if counts is not None:
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid, counts)  # type: ignore[no-untyped-call]
