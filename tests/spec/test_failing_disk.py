"""A disk that becomes read-only under a running server, as on Linux after an error."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.operated import operated
from tests.helpers.places import ENGINE
from tests.helpers.shell import Shell
from tests.helpers.two_owners import letters

DISK_BYTES = 64 << 20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(ENGINE == "postgres", reason="the disk of a database is its own matter"),
]


class Disk:
    """An ext4 file system in a file, which becomes read-only on an error."""

    def __init__(self, folder: Path) -> None:
        self.path, self._image = folder / "disk", folder / "image"
        self.path.mkdir()
        self._image.touch()
        os.truncate(self._image, DISK_BYTES)
        if not self._can("mkfs.ext4", "-q", self._image) or not self.mount():
            pytest.skip("needs the right to mount an ext4 file system")

    def mount(self) -> bool:
        return self._can("mount", "-o", "loop,errors=remount-ro", self._image, self.path)

    def fail(self) -> None:
        """Makes it read-only, even if files on it are open."""
        source = next(
            line.split()[0]
            for line in Path("/proc/mounts").read_text().splitlines()
            if line.split()[1] == str(self.path)
        )
        Path("/sys/fs/ext4", Path(source).name, "trigger_fs_error").write_text("a bad block")

    def repair(self) -> None:
        """Checks it and mounts it again, as an operator does when it is not in use."""
        subprocess.run(["umount", self.path], check=True)
        assert self._can("e2fsck", "-fy", self._image) and self.mount()

    def _can(self, *command: str | Path) -> bool:
        found = shutil.which(command[0], path=f"{os.environ['PATH']}:/sbin:/usr/sbin")
        if found is None:
            return False
        done = subprocess.run([found, *command[1:]], capture_output=True, check=False)
        return done.returncode <= 1  # e2fsck returns 1 after a repair


@contextmanager
def disk_in(folder: Path) -> Iterator[Disk]:
    if sys.platform != "linux" or os.geteuid():
        pytest.skip("only root mounts file systems")
    disk = Disk(folder)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk.path], check=True)


def test_a_disk_that_becomes_read_only_loses_nothing(tmp_path: Path) -> None:
    more = tmp_path / "more.ndjson"
    more.write_text('{"id": "m1", "body": "A lantern that came later."}\n')
    with disk_in(tmp_path) as disk:
        house = worlds.build(letters("home", 7), disk.path)
        token = house.grant(label="reader")[1]
        shell = Shell({"RUNG_STORE": str(house.path)})
        changes = (f"rung import {more} --connection late", "rung grant revoke reader")
        with operated(house.environment) as server:
            api = Api(server.url, token)
            before = api.rest("/v1/search", q="lantern")
            assert before.status == 200

            disk.fail()
            for command in changes:
                refused = shell.bash(command)
                assert refused.returncode == 1 and "read-only" in refused.stderr, refused
            for _ in range(20):
                assert api.rest("/v1/search", q="lantern").body == before.body
            assert api.rest("/readyz").status == 200
        disk.repair()
        assert "is sound" in shell.bash("rung check").stderr
        with operated(house.environment) as server:
            api = Api(server.url, token)
            assert api.rest("/v1/search", q="lantern").body == before.body
            for command in changes:
                assert shell.bash(command).returncode == 0
            assert api.rest("/v1/search", q="lantern").status == 401
