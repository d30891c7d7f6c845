"""Drops privileges before a process parses untrusted files, and limits the work for each record."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path
from typing import Any, Final

from evidence.limits import BUDGETS
from service.importing.process.frames import State

#: The exit code of a process that ran out of memory.
OUT_OF_MEMORY: Final = 86
MEBIBYTE: Final = 1 << 20
_NEW_NETWORK, _NEW_USER = 0x4000_0000, 0x1000_0000
_FORBIDDEN: Final = (
    *("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn"),
    *("pty.", "ftplib.", "smtplib.", "urllib."),
)


def confine() -> None:
    """Gives up the network, other processes, core dumps and the interrupt key."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the import decides when it ends
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.set_int_max_str_digits(0)  # time is limited here, and html.unescape raises otherwise
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        # Without privileges, only a new user namespace may have a network of its own.
        _ = libc.unshare(_NEW_NETWORK) and libc.unshare(_NEW_USER | _NEW_NETWORK)
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: Any) -> None:
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"An importer may not call {event}")


def cpu_seconds() -> float:
    """The CPU time of this process."""
    used = os.times()
    return used.user + used.system


def step_seconds(size: int) -> float:
    """The CPU time for a step that may read a file of this size."""
    return max(BUDGETS.import_record_seconds, size / MEBIBYTE * BUDGETS.import_mebibyte_seconds)


def file_seconds(size: int) -> float:
    """The CPU time for all records of a file."""
    return max(BUDGETS.import_file_seconds, step_seconds(size))


class Allowance:
    """The CPU time and the memory of a step. The system ends a process that exceeds them."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._idle, self._most = _mapped_bytes(), 0
        self.renew()

    def renew(self, seconds: float = BUDGETS.import_record_seconds) -> None:
        """Begins a step."""
        self._total = 0
        self._time(seconds)
        self._memory(BUDGETS.import_record_bytes)

    def advance(self, size: int, position: int) -> None:
        """Notes that so many bytes are read. Each MiB of a long step renews its time."""
        before, self._total = self._total, self._total + size
        self._state.position = position
        if before // MEBIBYTE != self._total // MEBIBYTE:
            self._time(max(self._state.seconds, BUDGETS.import_record_seconds))
        most = (self._total + MEBIBYTE) * BUDGETS.import_record_ratio
        self._memory(max(BUDGETS.import_record_bytes, most))

    @contextmanager
    def waiting(self, live: bool) -> Iterator[None]:
        """Reads, from a program if `live`."""
        self._state.waiting = int(live)
        yield
        self._state.waiting = 0

    def _time(self, seconds: float) -> None:
        self._state.seconds = ceil(seconds)
        signal.setitimer(signal.ITIMER_PROF, seconds)

    def _memory(self, most: int) -> None:
        if most == self._most:
            return
        if self._idle:
            with suppress(ValueError, OSError):  # if the system has no such limit
                _, hard = resource.getrlimit(resource.RLIMIT_AS)
                resource.setrlimit(resource.RLIMIT_AS, (self._idle + most, hard))
        self._most = self._state.memory = most


def _mapped_bytes() -> int:
    """The address space of this process; 0 if the system does not report it."""
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        return int(pages) * resource.getpagesize()
    return 0


def resident_bytes(process: int) -> int:
    """The memory of another process; 0 if it has ended."""
    with suppress(OSError):
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * resource.getpagesize()
    with suppress(OSError, ValueError):
        command = ["ps", "-o", "rss=", "-p", str(process)]
        kilobytes = subprocess.run(command, capture_output=True, check=False).stdout
        return int(kilobytes) * 1_024
    return 0
