"""The site of the documentation has every page, and takes nothing from other hosts."""

import re
from pathlib import Path

import pytest

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
