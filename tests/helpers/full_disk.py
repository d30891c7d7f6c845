"""A disk with limited room in each file: writes beyond it fail as on a full disk.

A small library in front of libc refuses these writes. It needs a C compiler.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.server import ROOT

SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static ssize_t put(int fd, const void *bytes, size_t size, off_t at) {
  char link[64], path[4096] = {0};
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".db")
      && at + (off_t)size > atoll(getenv("FULL_DISK"))) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_pwrite64, fd, bytes, size, at);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at) { return put(fd, from, size, at); }
ssize_t pwrite64(int fd, const void *from, size_t size, off_t at) {
  return put(fd, from, size, at);
}
"""


#: `rung` with one transaction per batch, however busy the machine is.
RUNG = """
import sys
from service.__main__ import rung
from service.records.writing import ingest
ingest.BATCH_SECONDS, ingest.LEAST_SHARE = 1 << 30, 1
rung(sys.argv[1:], prog_name="rung")
"""


class FullDisk:
    """Runs `rung` on a disk that fills up."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if sys.platform != "linux" or compiler is None:
            pytest.skip("needs Linux and a C compiler")
        (folder / "full.c").write_text(SOURCE)
        self._library = folder / "full.so"
        command = [compiler, "-shared", "-fPIC", "-o", str(self._library), str(folder / "full.c")]
        subprocess.run(command, check=True)

    def run(self, *words: str, room: int) -> subprocess.CompletedProcess[str]:
        """Runs a command; each file of the store can grow to `room` bytes."""
        environ = {**os.environ, "LD_PRELOAD": str(self._library), "FULL_DISK": str(room)}
        command = [sys.executable, "-c", RUNG, *words]
        return subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
        )
