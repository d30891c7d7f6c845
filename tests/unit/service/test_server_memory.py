"""What a server loads, and how it holds it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.server import ROOT

#: Libraries that a server of records with the settings of a platform never needs.
UNUSED = {"rich", "pygments", "requests", "urllib3", "tomlkit"}

SERVED = "import service.serving\nfrom service.app import create_app\ncreate_app()\n"
LOADED = "import sys\nprint(*{name.partition('.')[0] for name in sys.modules})"
HEAPS = """
import ctypes, sys, threading
import service.serving

def hold(go):
    kept = [bytes(1_000) for _ in range(1_000)]
    go.wait()

go = threading.Event()
threads = [threading.Thread(target=hold, args=(go,)) for _ in range(4)]
for thread in threads:
    thread.start()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
go.set()
"""


def run(program: str, folder: Path, *arguments: str) -> str:
    """What a process says that runs the program."""
    environ = {"PYTHONPATH": str(ROOT), "RUNG_STORE": str(folder / "rung.db")}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_server_loads_no_library_that_only_others_use(tmp_path: Path) -> None:
    loaded = set(run(SERVED + LOADED, tmp_path).splitlines()[-1].split())
    assert {"flask", "service"} <= loaded
    assert not loaded & UNUSED


@pytest.mark.skipif(sys.platform != "linux", reason="a heap for each thread is glibc's way")
def test_the_threads_of_a_server_share_one_heap(tmp_path: Path) -> None:
    told = tmp_path / "heaps.xml"
    run(HEAPS, tmp_path, str(told))
    assert told.read_text().count("<heap nr=") == 1
