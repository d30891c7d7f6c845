"""Takes the pictures of `docs/images` anew, from the demo as it is served.

    python -m tests.browser.screenshots [FOLDER]

With a folder, every page is taken there at every screen, to be looked at; the documents' pictures
stay as they are.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import launched
from tests.browser.reading import enter
from tests.browser.site import Site, serving_site
from tests.browser.visitor import (
    DARK_DESK,
    DARK_PHONE,
    DESK,
    PHONE,
    Screen,
    Visitor,
    visiting,
)

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PUBLIC = {"RUNG_PUBLIC_URL": "https://rung.example.com"}
PICTURE_BYTES = 300_000
#: A question to the demo.
QUESTION = "what+did+I+promise+Noor"
SCROLL = "(one) => one.scrollIntoView({behavior: 'instant'})"
WIDE = Screen("wide", 1280, 1000)
NARROW = Screen("narrow", 360, 800, touch=True, scale=1.5)


def search(visitor: Visitor, site: Site) -> None:
    """A search with its answer."""
    visitor.go("/try")
    visitor.page.get_by_label("Token for records").fill(site.token)
    visitor.page.get_by_label("Arguments").first.fill('{"query": "quorum"}')
    visitor.page.get_by_role("button", name="Call search").click()
    visitor.page.locator("#calls > li").wait_for()
    visitor.page.mouse.move(0, 0)
    show(visitor, "body")


def read(visitor: Visitor, site: Site) -> None:
    """The window that the hit of the search opens."""
    search(visitor, site)
    visitor.page.locator('#rungs button[data-why="read"]').click()
    visitor.page.locator("#calls > li:nth-child(2)").wait_for()
    show(visitor, "#answer")


def reading(path: str) -> Callable[[Visitor, Site], None]:
    """A reading page, after the token was entered."""

    def act(visitor: Visitor, site: Site) -> None:
        visitor.go("/read")
        enter(visitor, site.token)
        visitor.go(path)

    return act


def hit(path: str) -> Callable[[Visitor, Site], None]:
    """The page of the first hit of a search, without the fragment that scrolls to its match."""

    def act(visitor: Visitor, site: Site) -> None:
        reading(path)(visitor, site)
        address = visitor.page.locator("a.hit").first.get_attribute("href") or ""
        visitor.go(address.partition("#")[0])

    return act


def show(visitor: Visitor, selector: str) -> None:
    """Puts something at the top of the window, at once."""
    visitor.page.locator(selector).evaluate(SCROLL)


def page(path: str) -> Callable[[Visitor, Site], None]:
    """A page as it opens."""
    return lambda visitor, site: visitor.go(path)


PICTURES = (
    ("read", WIDE, reading(f"/read?q={QUESTION}")),
    ("read-phone", NARROW, hit(f"/read?q={QUESTION}")),
)
VIEWS = {
    "index": page("/"),
    "connect": page("/connect"),
    "connect-papers": page("/connect?for=papers"),
    "try": page("/try"),
    "try-search": search,
    "try-read": read,
    "docs-api": page("/docs/api"),
    "read": page("/read"),
    "read-begin": reading("/read"),
    "read-results": reading(f"/read?q={QUESTION}"),
    "read-record": hit("/read?q=quorum+elm"),
    "read-papers": reading("/read/papers?q=tides"),
    "read-paper": hit("/read/papers?q=tides"),
}


def main() -> None:
    """Ends with an error where a picture is too large for the documents."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with serving_site(**PUBLIC) as site, sync_playwright() as playwright:
        browser = launched(playwright)
        if folder is None:
            for name, screen, act in PICTURES:
                path = IMAGES / f"{name}.png"
                take(browser, site, screen, act, path, whole=False)
                if path.stat().st_size > PICTURE_BYTES:
                    sys.exit(f"{path.name} has {path.stat().st_size} bytes, over {PICTURE_BYTES}.")
        else:
            for name, act in VIEWS.items():
                for screen in (PHONE, DESK, DARK_PHONE, DARK_DESK):
                    take(browser, site, screen, act, folder / f"{name}-{screen}.png", whole=True)
        browser.close()


def take(
    browser: Browser,
    site: Site,
    screen: Screen,
    act: Callable[[Visitor, Site], None],
    path: Path,
    *,
    whole: bool,
) -> None:
    """One picture: of the window, or of the whole page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with visiting(browser, site.base, screen) as visitor:
        act(visitor, site)
        visitor.page.screenshot(path=path, full_page=whole, animations="disabled")


if __name__ == "__main__":
    main()
