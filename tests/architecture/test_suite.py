"""The suite itself: no test hangs, however it is started."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.server import ROOT
from tests.helpers.waiting import WAIT_SECONDS

HUNG = """
import socket

def test_that_waits_for_ever():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.recv(1)

def test_that_runs_after_it():
    pass
"""


def run(*words: str | Path, ignore_interrupt: bool = False) -> subprocess.CompletedProcess[str]:
    """pytest as `make test` runs it, in a process of its own."""
    ignore = (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignore_interrupt else None
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        preexec_fn=ignore,
    )


def test_every_test_has_a_limit_above_the_time_helpers_wait(pytestconfig: pytest.Config) -> None:
    assert WAIT_SECONDS < float(pytestconfig.getini("timeout")) <= 120


@pytest.mark.slow
def test_a_test_that_waits_for_a_socket_is_ended_and_the_next_one_runs(tmp_path: Path) -> None:
    file = tmp_path / "test_hung.py"
    file.write_text(HUNG)
    done = run("-c", ROOT / "setup.cfg", "--rootdir", tmp_path, "--timeout", "1", file)
    assert "1 failed, 1 passed" in done.stdout and "Timeout" in done.stdout, done.stdout


@pytest.mark.slow
def test_an_interrupted_import_ends_where_the_suite_runs_in_the_background() -> None:
    done = run(
        "tests/cli/test_import_interrupted.py", "-k", "stopped_by_its_owner", ignore_interrupt=True
    )
    assert done.returncode == 0, done.stdout
