"""The units of systemd: valid, and a restart behind the socket refuses nobody."""

import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from socket import create_server
from threading import Event
from urllib.request import urlopen

from tests.helpers.server import ROOT

UNITS = ROOT / "docs/deploy"


def test_systemd_finds_no_fault_in_the_units(tmp_path: Path) -> None:
    for unit in (UNITS / "rung.service", UNITS / "rung.socket", UNITS / "rung-sync.service"):
        text = unit.read_text(encoding="utf-8")
        text = re.sub(r"=/opt/rung/\.venv/bin/\w+", f"={sys.executable}", text)
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_a_restart_behind_the_socket_refuses_nobody(tmp_path: Path) -> None:
    with create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        os.set_inheritable(listener.fileno(), True)
        done = Event()

        def ask() -> int:
            asked = 0
            while not done.is_set():
                with urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
                    assert answer.status == 200
                asked += 1
            return asked

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            try:
                for _ in range(2):
                    server = activated(listener.fileno(), tmp_path)
                    with urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
                        assert answer.status == 200
                    server.terminate()
                    server.wait()
                server = activated(listener.fileno(), tmp_path)
            finally:
                done.set()
            counts = [found.result() for found in asking]
        server.terminate()
        server.wait()
    assert all(counts)


def activated(fd: int, folder: Path) -> subprocess.Popen[bytes]:
    """The command of the unit, with the socket where systemd puts it: file descriptor 3."""
    text = (UNITS / "rung.service").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=\S+/gunicorn (.+)$", text, re.MULTILINE)
    command = shlex.join([sys.executable, "-m", "gunicorn", *shlex.split(line)])
    script = f"exec 3<&{fd}; LISTEN_FDS=1 LISTEN_PID=$$ exec {command}"
    env = {**os.environ, "RUNG_STORE": str(folder / "rung.db"), "WEB_CONCURRENCY": "1"}
    return subprocess.Popen(["bash", "-c", script], cwd=ROOT, env=env, pass_fds=[fd])
