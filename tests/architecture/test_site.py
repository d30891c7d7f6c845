"""The site has every page and takes nothing from other hosts; each command has a man page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from service.__main__ import rung
from tests.architecture.sources import ROOT, files, text

CONFIGURATION = Path("mkdocs.yml")


def navigation(configuration: str) -> list[str]:
    """The pages that the navigation names, in their order."""
    return re.findall(r"^ +- (?:[\w -]+: )?(\S+\.md)$", configuration, re.MULTILINE)


def test_the_navigation_names_every_page_once() -> None:
    pages = [str(path.relative_to("docs")) for path in files("docs", ending=".md")]
    assert sorted(navigation(text(CONFIGURATION))) == sorted(pages)


def test_a_page_that_is_missing_from_the_navigation_is_noticed() -> None:
    less = text(CONFIGURATION).replace("      - privacy.md\n", "")
    assert "privacy.md" in navigation(text(CONFIGURATION)) and "privacy.md" not in navigation(less)


@pytest.mark.parametrize("setting", ["font: false", "polyfills: [site/iframe-worker.js]"])
def test_the_site_loads_no_fonts_or_scripts_of_other_hosts(setting: str) -> None:
    assert setting in text(CONFIGURATION)
    assert (ROOT / "docs/site/iframe-worker.js").is_file()


def test_every_command_has_a_man_page_with_its_help(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "docs/site/man.py"), str(tmp_path)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    pages = {path.name for path in tmp_path.iterdir()}
    assert {f"rung-{name}.1" for name in rung.commands} | {"rung.1"} <= pages
    page = (tmp_path / "rung-grant-create.1").read_text(encoding="utf-8")
    assert "Create a grant and print its token" in page and r"\-\-expires" in page
