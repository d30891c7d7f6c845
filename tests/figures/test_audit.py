"""The requirements with hashes are those that hosts build from."""

import re

import pytest

from tests.figures.__main__ import page
from tests.figures.audit import LOCK, NOT_CHECKED, ROOT, pinned, unpinned, verdict

REQUIREMENTS = ROOT / "requirements.txt"


def test_the_lock_has_what_the_requirements_have() -> None:
    assert set(pinned(REQUIREMENTS.read_text())) <= set(pinned(LOCK.read_text()))


def test_hosts_and_the_image_get_the_driver_of_postgresql() -> None:
    for file in (REQUIREMENTS, LOCK):
        names = dict(pinned(file.read_text()))
        assert {"psycopg", "psycopg-binary", "psycopg-pool"} <= names.keys(), file.name


def test_every_requirement_has_a_hash() -> None:
    assert unpinned(LOCK.read_text()) == []
    assert unpinned("apispec==6.10.1\nclick==8.5.1 \\\n    --hash=sha256:00") == [
        "'apispec==6.10.1' has no hash"
    ]


def test_a_package_that_no_source_knows_is_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    lock = pinned(LOCK.read_text())
    clean = [{"name": name, "version": version, "vulns": []} for name, version in lock]
    skipped = {"name": lock[0][0], "skip_reason": "not found"}
    advisory = {**clean[1], "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
    assert verdict(clean) == 0
    assert "not checked:" not in capsys.readouterr().out
    for packages in ([], [skipped, *clean[1:]]):
        assert verdict(packages) == NOT_CHECKED
        assert "\nnot checked:" in capsys.readouterr().out
    assert verdict([skipped, advisory, *clean[2:]]) == 1


def test_a_row_that_was_not_checked_has_not_passed() -> None:
    last = {"held": None, "tests": 0, "skipped": 0, "counts": {}, "seconds": 1, "date": ""}
    (row,) = [line for line in page({"15": last}).splitlines() if line.startswith("| 15 |")]
    assert "passed" not in row and "not checked" in row


def test_the_image_installs_nothing_without_a_hash() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    packages, rung = re.findall(r"pip install (.+)", text)
    assert packages.startswith("--no-cache-dir --require-hashes --requirement $lock ")
    locks = [LOCK, *(ROOT / "locks").glob("*.lock")]
    assert len(locks) > 1
    assert not [wrong for lock in locks for wrong in unpinned(lock.read_text())]
    assert {"--no-deps", "--no-build-isolation", "."} <= set(rung.split())
    (builder,) = re.findall(r'requires = \["(\w+)', (ROOT / "pyproject.toml").read_text())
    assert builder in dict(pinned(LOCK.read_text()))
