"""With a local model, no server, builder or command connects, or writes outside its store.

The system calls of real processes are traced: a library written in C calls the system itself.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from service.meaning.install import convert
from tests.helpers import tiny_model
from tests.helpers.loopback import free_port
from tests.helpers.server import ROOT, UNWANTED
from tests.helpers.waiting import WAIT_SECONDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]
CALLS = "connect,sendto,sendmsg,clone,clone3,open,openat,creat,mkdir,mkdirat,rename,renameat2"
INTERNET = re.compile(r"(?:connect|sendto|sendmsg)\(.*AF_INET")
CHANGE = re.compile(r"(?:creat|mkdir|rename)\w*\(|O_WRONLY|O_RDWR|O_CREAT")
PATH = re.compile(r'"([^"]+)"')


class Traced:
    """Commands in a home of their own: a store, a model, and folders that must stay empty."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.trace = folder, folder / "trace"
        for name in ("model", "work", "home", "tmp"):
            (folder / name).mkdir()
        tiny_model.write(folder / "weights")
        convert(folder / "weights", folder / "model")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(UNWANTED)}
        quiet = ("ORT_DISABLE_TELEMETRY", "OPENBLAS_NUM_THREADS", "XDG_DATA_HOME")
        self.environ = {name: text for name, text in kept.items() if name not in quiet} | {
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "RUNG_MODEL": str(folder / "model"),
            "RUNG_STORE": str(folder / "work/rung.db"),
            "RUNG_CONFIG": "/dev/null",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts a command of `rung` under the tracer."""
        tracer = ["strace", "-f", "-qq", "-s", "300", "-e", f"trace={CALLS}", "-o", str(self.trace)]
        command = [*tracer, sys.executable, "-m", "service", *words]
        options = {"env": self.environ, "cwd": self.folder / "work", "start_new_session": True}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )

    def run(self, *words: str) -> str:
        """Runs a command to its end; returns what it printed."""
        with self.start(*words) as process:
            output, errors = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 0, errors
        return output

    def check(self) -> None:
        """Fails if a call went to the internet, or changed a file outside the store."""
        lines = self.trace.read_text(errors="replace").splitlines()
        assert lines and [line for line in lines if INTERNET.search(line)] == []
        allowed = (str(self.folder / "work"), str(self.folder / "tmp"), "/dev/", "/proc/self/")
        for line in filter(CHANGE.search, lines):
            for path in PATH.findall(line):
                whole = os.path.normpath(self.folder / "work" / path)
                assert whole.startswith(allowed), line
        assert list((self.folder / "home").iterdir()) == []


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    return Traced(tmp_path)


def test_commands_connect_to_nothing_and_write_to_the_store_only(traced: Traced) -> None:
    assert f"dimensions {tiny_model.HIDDEN}" in traced.run("model", "show")
    traced.check()
    token = re.findall(r"token (\S+)", traced.run("demo"))[0]
    traced.check()
    traced.run("vectors", "build")
    traced.check()
    traced.environ["RUNG_TOKEN"] = token
    assert "quorum" in traced.run("search", "quorum")
    traced.check()


def test_a_server_connects_to_nothing_and_its_master_starts_no_thread(traced: Traced) -> None:
    token, port = re.findall(r"token (\S+)", traced.run("demo"))[0], free_port()
    with traced.start("serve", "--port", str(port), "--workers", "2") as process:
        try:
            url = f"http://127.0.0.1:{port}/v1/search?q=quorum"
            ask = ["curl", "-sf", "-H", f"Authorization: Bearer {token}", url]
            until(lambda: b"quorum" in subprocess.run(ask, capture_output=True).stdout)
            (master,) = children(process.pid)
            until(lambda: "model.onnx" in traced.trace.read_text(errors="replace"))  # the builder
            first = children(master)  # the builder, then the workers
            os.kill(first[-1], signal.SIGKILL)
            until(lambda: first[-1] not in children(master) and len(children(master)) == len(first))
            assert b"quorum" in subprocess.run(ask, capture_output=True).stdout
        finally:
            for child in children(process.pid):
                os.kill(child, signal.SIGTERM)
            process.communicate(timeout=WAIT_SECONDS)
    traced.check()
    threads = re.compile(rf"^{master} .*CLONE_THREAD", re.MULTILINE)
    forks = re.compile(rf"^{master} .*clone\w*\(", re.MULTILINE)
    calls = traced.trace.read_text(errors="replace")
    assert threads.findall(calls) == [] and len(forks.findall(calls)) >= 3


def until(happened: Callable[[], bool]) -> None:
    """Waits for something that should happen soon."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
