"""The owner at a headless Chromium, in the place of `xdg-open`.

    python -m tests.clients.owner STORE JOURNAL URL

The owner enters a code at the page of a request, ticks one stream and allows the first request;
later ones are refused. The journal gets a line for each request.
"""

import re
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from service import place
from tests.browser.conftest import launched
from tests.helpers.signin import MAIL, new_code


def main(store: str, journal: str, url: str) -> None:
    with sync_playwright() as playwright:
        browser = launched(playwright)
        visit(browser.new_page(), store, journal, url)
        browser.close()


def visit(page: Page, store: str, journal: str, url: str) -> None:
    """Opens the page of a request and decides."""
    with Path(journal).open("a+", encoding="utf-8") as lines:
        lines.seek(0)
        decision = "Refuse" if lines.read() else "Allow"
        lines.write(f"{decision} {url}\n")
    decide(page, store, url, decision)


def decide(page: Page, store: str, url: str, decision: str) -> None:
    """Leads the browser from the page of a request to the callback of the client."""
    page.goto(url)
    page.get_by_label("Code or passphrase").fill(new_code(place.read(store)))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Allow an application").wait_for()
    page.locator(f"input[name=stream][value='{MAIL}']").check()
    page.get_by_role("button", name=decision).click()
    page.wait_for_url(re.compile(r"[?&](code|error)="))


if __name__ == "__main__":
    main(*sys.argv[1:])
