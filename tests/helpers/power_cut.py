"""Files after a power cut: only the bytes that were written to the disk remain.

A small library in front of libc copies every file at each `fsync`, from that descriptor, and
records each folder. It needs a C compiler.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from signal import SIGKILL
from tempfile import mkdtemp

import pytest

from tests.helpers.server import ROOT

SOURCE = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A name that is gone from a folder is gone from the disk once the folder is written. */
static void drop_removed(const char *folder, const char *disk) {
  char there[8192], kept[8192];
  struct dirent *entry;
  DIR *all = opendir(disk);
  while (!strcmp(folder, getenv("POWER_CUT_FOLDER")) && (entry = readdir(all))) {
    snprintf(there, sizeof there, "%s/%s", folder, entry->d_name);
    snprintf(kept, sizeof kept, "%s/%s", disk, entry->d_name);
    if (strstr(entry->d_name, ".db") && access(there, F_OK)) unlink(kept);
  }
  closedir(all);
}

/* The power fails at one of the writes to the disk, after it. */
static void fail(void) {
  static int written;
  const char *last = getenv("POWER_CUT_AT");
  if (last && ++written == atoi(last)) kill(getpid(), SIGKILL);
}

static void keep(int fd) {
  char link[64], path[4096] = {0}, to[8192], block[65536];
  struct stat seen;
  const char *disk = getenv("POWER_CUT");
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (!disk || fstat(fd, &seen) || readlink(link, path, sizeof path - 1) < 0) return;
  if (S_ISDIR(seen.st_mode)) {
    snprintf(to, sizeof to, "%s/folders", disk);
    int out = open(to, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dprintf(out, "%s\n", path);
    close(out);
    drop_removed(path, disk);
    return;
  }
  snprintf(to, sizeof to, "%s/%s", disk, strrchr(path, '/') + 1);
  int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  off_t at = 0;
  ssize_t got;
  while ((got = pread(fd, block, sizeof block, at)) > 0) {
    if (write(out, block, got) != got) abort();
    at += got;
  }
  close(out);
}

int fsync(int fd) {
  int failed = syscall(SYS_fsync, fd);
  if (!failed) keep(fd), fail();
  return failed;
}
int fdatasync(int fd) {
  int failed = syscall(SYS_fdatasync, fd);
  if (!failed) keep(fd), fail();
  return failed;
}
"""


class Disk:
    """The disk of a store in `folder`, which contains nothing else: see `after`."""

    def __init__(self, folder: Path, store: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if sys.platform != "linux" or compiler is None:
            pytest.skip("needs Linux and a C compiler")
        folder.mkdir()
        self.store, self._kept = store, folder / "kept"
        self._kept.mkdir()
        (folder / "keep.c").write_text(SOURCE)
        self._library = folder / "keep.so"
        command = [compiler, "-shared", "-fPIC", "-o", str(self._library), str(folder / "keep.c")]
        subprocess.run(command, check=True)
        if store.exists():
            # In its own process: reading a file here would release SQLite's locks on it.
            there = [str(path) for path in store.parent.glob(f"{store.name}*")]
            subprocess.run(["cp", *there, str(self._kept)], check=True)

    def run(self, *words: str, stdin: bytes = b"", cut: int = 0) -> bool:
        """Runs `rung` with these arguments on the store.

        The power fails at write number `cut` to the disk, if there are that many.
        Returns whether the command finished.
        """
        preload = {"LD_PRELOAD": str(self._library), "POWER_CUT": str(self._kept)}
        preload["POWER_CUT_FOLDER"] = str(self.store.parent)
        command = [sys.executable, "-m", "service", *words, "--store", str(self.store)]
        environ: dict[str, str] = {**os.environ, **preload, "POWER_CUT_AT": str(cut)}
        done = subprocess.run(command, cwd=ROOT, env=environ, input=stdin, check=False)
        assert done.returncode == 0 or cut and done.returncode == -SIGKILL, done
        return done.returncode == 0

    def after(self) -> Path:
        """A copy of the store when the power returns, without the index of its log."""
        folder = Path(mkdtemp(dir=self._kept.parent))
        for path in self._kept.glob(f"{self.store.name}*"):
            if not path.name.endswith("-shm"):
                shutil.copyfile(path, folder / path.name)
        return folder / self.store.name

    def folders(self) -> Sequence[str]:
        """The folders whose entries were written to the disk."""
        return (self._kept / "folders").read_text().splitlines()
