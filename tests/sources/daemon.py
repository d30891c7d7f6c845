"""A real server of mail or calendars, in a process of its own on loopback."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from tests.helpers.waiting import WAIT_SECONDS

USER, PASSWORD = "ada", "correct-horse"


@contextmanager
def home(name: str) -> Iterator[Path]:
    """A temporary folder for the data of a server."""
    folder = Path(tempfile.mkdtemp(prefix=f"rung-{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(command: Sequence[str], port: int) -> Iterator[None]:
    """Runs a server, from when it listens on the port; ends all its processes."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        _wait_for(port, process)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(WAIT_SECONDS)


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    pause = Event()
    for _ in range(WAIT_SECONDS * 10):
        assert process.poll() is None, "The server ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            pause.wait(0.1)
    raise TimeoutError("The server does not answer.")
