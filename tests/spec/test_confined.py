"""A container with a read-only root, no home, a temporary folder of 64 MB and no network."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.demo import journey, serving_demo
from tests.helpers.places import ENGINE
from tests.helpers.server import ROOT

CONFINED = """set -e
mount -t tmpfs -o size=64m tmpfs "$TMPDIR"
mount -o remount,ro,bind /
ip link set lo up
! touch "$0"
exec "$@"
"""
JOURNEY = """
import json
from tests.helpers.demo import journey, serving_demo
with serving_demo() as (url, token):
    print(json.dumps(journey(url, token)))
"""
NAMESPACES = ["unshare", "--map-root-user", "--mount", "--net"]

pytestmark = pytest.mark.skipif(ENGINE == "postgres", reason="a database is in the network")


@pytest.mark.slow
def test_a_confined_server_answers_as_any_other(tmp_path: Path) -> None:
    if shutil.which("ip") is None or subprocess.run([*NAMESPACES, "true"], check=False).returncode:
        pytest.skip("needs the command ip and the right to make namespaces")
    shell = [*NAMESPACES, "sh", "-c", CONFINED, str(ROOT / "written")]
    done = subprocess.run(
        [*shell, sys.executable, "-c", JOURNEY],
        env={**os.environ, "TMPDIR": str(tmp_path), "HOME": "/nonexistent"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with serving_demo() as (url, token):
        assert json.loads(done.stdout) == journey(url, token)
