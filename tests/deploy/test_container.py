"""The image: small, without tools, and started on a read-only disk by a user who owns nothing.

`make container` runs it. buildah makes the image, over Debian's Python if no registry of images
answers. The file system of the image is then entered with `unshare`, because podman needs cgroups
that a container in which the tests run may not have.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.server import ROOT

pytestmark = [
    pytest.mark.timeout(1_800),
    pytest.mark.skipif("CONTAINER" not in os.environ, reason="make container runs it"),
]

MOST_BYTES = 250_000_000
USER = 34_567
#: Those of this machine: the package index may be behind a proxy with its own authority.
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
NAME = "localhost/rung-test"
DEBIAN = ["--variant=minbase", "--include=python3,python3-venv,ca-certificates", "bookworm"]
#: A random user mounts nothing, so this part runs as root: $1 is the file system, $2 the volume.
ENTER = f"""
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && mount -t tmpfs tmpfs "$1/tmp" \
&& mount --bind "$2" "$1/data" && mount --bind /proc "$1/proc" || exit 99
exec chroot --userspec={USER}:{USER} "$1" env -i PATH=/opt/rung/bin:/usr/local/bin:/usr/bin:/bin \
  LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 RUNG_STORE=/data/rung.db sh -c "$3"
"""


def run(*words: str | Path) -> str:
    environment = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout.strip()


def base(folder: Path) -> str:
    """The image to build on: `CONTAINER_BASE`, the one of the Dockerfile, or Debian with Python."""
    if chosen := os.environ.get("CONTAINER_BASE"):
        return chosen
    pull = ["buildah", "pull", "docker.io/library/python:3.11-slim"]
    if subprocess.run(pull, env={**os.environ, "STORAGE_DRIVER": "vfs"}).returncode == 0:
        return pull[-1]
    run("debootstrap", *DEBIAN, folder / "root")
    (folder / "root/usr/bin/python").symlink_to("python3")
    shutil.copy(AUTHORITIES, folder / "root" / AUTHORITIES.relative_to("/"))
    container = run("buildah", "from", "scratch")
    run("buildah", "add", container, folder / "root", "/")
    run("buildah", "commit", "--rm", container, f"{NAME}-base")
    return f"{NAME}-base"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file system of the image."""
    chosen = base(tmp_path_factory.mktemp("base"))
    given = ["--network", "host", "--build-arg", f"BASE={chosen}", "--tag", NAME]
    run("buildah", "build", *given, ROOT)
    container = run("buildah", "from", NAME)
    yield Path(run("buildah", "mount", container))
    run("buildah", "rm", container)


def test_the_image_is_small_and_has_no_tools(root: Path) -> None:
    size = int(run("du", "--summarize", "--block-size=1", root).split()[0])
    assert size <= MOST_BYTES, f"{size:,} bytes"
    for path in ("*/pip", "*/setuptools", "*/__pycache__", "*/bin/gcc", "*/bin/make"):
        assert run("find", root, "-xdev", "-path", path, "-not", "-path", "*/proc/*") == "", path


def test_a_random_user_fills_a_store_and_searches_it_on_a_read_only_disk(
    root: Path, tmp_path: Path
) -> None:
    volume = tmp_path / "data"
    volume.mkdir()
    volume.chmod(0o777)
    script = (
        "touch /x 2>/dev/null && exit 98; rung demo >/dev/null && "
        "rung search quorum --token-file /data/demo-token && python -c 'import wsgi'"
    )
    words = ("unshare", "--mount", "sh", "-c", ENTER, "sh", root, volume)
    answer = run(*words, f"cd /srv/rung; {script}")
    assert "The quorum met beneath the elm." in answer.replace("<mark>", "").replace("</mark>", "")
