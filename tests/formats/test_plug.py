"""A format of another package: installed beside Rung, detected, imported, found."""

import subprocess
import sys
from pathlib import Path

from tests.formats.owner import Owner, counts, write
from tests.helpers.shell import Shell
from tests.helpers.stdio import ROOT

JOURNAL = """\
[2026-03-03 21:05] Erster Abend am Leuchtturm.
Die Lampe flackert. @wartung

Morgen mehr 🌊
[2026-03-04 07:30] Sturm.
"""
BROKEN = """\
[project]
name = "rung-broken"
version = "1"
[project.entry-points."rung.formats"]
csv = "rung_broken:FORMAT"
lost = "rung_broken.nowhere:FORMAT"
[tool.setuptools]
py-modules = ["rung_broken"]
"""


def install(package: Path, folder: Path) -> None:
    """Installs a package into a folder, without an index."""
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target")
    command = [sys.executable, "-m", "pip", "install", *options, str(folder), str(package)]
    subprocess.run(command, check=True, capture_output=True)


def test_a_format_of_another_package_is_imported_as_ours_are(owner: Owner) -> None:
    source = ROOT / "examples/rung-jrnl"
    assert len((source / "rung_jrnl.py").read_text().splitlines()) <= 50
    package = write(
        owner.home / "package",
        {path.name: path.read_bytes() for path in source.iterdir() if path.is_file()},
    )
    install(package, owner.home / "site")
    write(owner.home, {"diary.txt": JOURNAL})
    environ = {**owner.shell.environ, "PYTHONPATH": str(owner.home / "site")}
    shell = Shell(environ, owner.home)
    first = shell.bash("rung import diary.txt --connection c")
    assert "diary.txt is read as jrnl." in first.stderr and counts(first.stderr)["new"] == 2
    assert counts(shell.bash("rung import diary.txt --connection c").stderr)["unchanged"] == 2
    assert "Erster Abend" in owner.finds("flackert", "journal:")


def test_a_format_that_cannot_be_loaded_is_reported_and_the_others_work(owner: Owner) -> None:
    files = {"pyproject.toml": BROKEN, "rung_broken.py": "FORMAT = 1\n"}
    install(write(owner.home / "package", files), owner.home / "site")
    write(owner.home, {"t.csv": "id,t\n1,a\n"})
    shell = Shell({**owner.shell.environ, "PYTHONPATH": str(owner.home / "site")}, owner.home)
    done = shell.bash("rung import t.csv --connection c")
    assert counts(done.stderr)["new"] == 1
    assert "The format 'lost' of rung-broken cannot be used" in done.stderr
    assert "The format 'csv' of rung-broken cannot be used" in done.stderr
