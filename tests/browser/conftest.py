"""One browser and one site for the run; each test visits with a fresh profile."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.browser.site import Site, serving_site
from tests.browser.visitor import DESK, Screen, Visitor, visiting
from tests.helpers.packages import install_node_packages

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """The served demo."""
    with serving_site() as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, driven over its debugging protocol; axe is there for it."""
    install_node_packages(HERE)
    with sync_playwright() as playwright:
        found = launched(playwright)
        yield found
        found.close()


def launched(playwright: Playwright) -> Browser:
    """A browser without a window. There is no sandbox for root in a container."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def screen() -> Screen:
    """The window of a test that does not name one."""
    return DESK


@pytest.fixture
def visitor(browser: Browser, site: Site, screen: Screen) -> Iterator[Visitor]:
    """A person at the site. The test fails where a page complained or asked somebody else."""
    with visiting(browser, site.base, screen) as found:
        yield found
        assert not found.complaints
        assert not found.foreign_requests()
