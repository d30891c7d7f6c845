"""The deployment files do what they say: the image, the release phase, the variables they name."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import pytest

from service.settings import SETTINGS
from tests.helpers.server import ROOT, serving

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
#: The user of the image owns nothing; only root may switch users.
STRANGER = 10_001 if os.geteuid() == 0 else None


def copied(stage: int) -> list[str]:
    """What a stage of the Dockerfile copies out of this folder."""
    text = DOCKERFILE.split("\nFROM ")[1 + stage]
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    return [name for line in lines for name in line.split()]


def test_the_builder_is_sent_all_that_the_dockerfile_copies_and_no_more() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    sent = {line[1:] for line in lines if line.startswith("!")}
    assert sent == {*copied(0), *copied(2)}
    assert not any(fnmatch(name, "**/__pycache__") for name in sent)


@pytest.fixture
def image() -> Iterator[Path]:
    """A folder that other users may read, unlike those of pytest."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.slow
def test_the_image_serves_without_the_checkout_for_a_user_who_owns_nothing(image: Path) -> None:
    build, site, run, scratch = (image / name for name in ("build", "site", "run", "scratch"))
    for folder, stage in ((build, 0), (run, 2)):
        folder.mkdir()
        for name in copied(stage):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, folder / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", site, build],
        check=True,
        env={**os.environ, "PIP_NO_INDEX": "1"},
    )
    scratch.mkdir()
    scratch.chmod(0o777)
    env = {"PYTHONPATH": str(site), "TMPDIR": str(scratch), "HOME": "/nonexistent"}
    with serving("wsgi:app", env, cwd=run, config="gunicorn.conf.py", user=STRANGER) as base:
        with urlopen(f"{base}/healthz") as answer:
            assert json.load(answer)["status"] == "ok"
        for page in ("/connect", "/try", "/openapi.json", "/llms.txt"):
            with urlopen(f"{base}{page}") as answer:
                assert answer.status == 200 and len(answer.read()) > 500


def test_the_image_starts_what_the_procfile_starts() -> None:
    web = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines())["web"]
    (command,) = re.findall(r"^CMD (\[.+\])$", DOCKERFILE, re.MULTILINE)
    assert shlex.join(json.loads(command)) == web


def release(env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """The release phase of the Procfile, in its own folder."""
    (line,) = re.findall(r"^release: (.+)$", (ROOT / "Procfile").read_text(), re.MULTILINE)
    program, *rest = shlex.split(line)
    assert program == "python"
    return subprocess.run(
        [sys.executable, *rest],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
    )


def test_the_release_phase_lets_good_settings_pass_and_ends_on_bad_ones(tmp_path: Path) -> None:
    assert release({"DYNO": "release.1"}, tmp_path).returncode == 0
    bad = release({"RUNG_PUBLIC_URL": "example.com", "RUNG_STORE_URL": "https://x/y"}, tmp_path)
    assert bad.returncode != 0
    assert "RUNG_PUBLIC_URL" in bad.stderr and "RUNG_STORE_SHA256" in bad.stderr


def app() -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads((ROOT / "app.json").read_text())["env"]
    return found


@pytest.mark.parametrize("name", app())
def test_a_variable_of_app_json_is_a_setting_and_a_secret_is_generated(name: str) -> None:
    setting = next(row for row in SETTINGS if row.variable == name)
    entry = app()[name]
    assert (entry.get("generator") == "secret") == (setting.secret)
    assert entry["description"] and (setting.secret or entry["required"] is False)
