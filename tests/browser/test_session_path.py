"""The path of a session in a browser: tabs, the back button, copied addresses, sign-out, expiry."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from service.access.entries import Entries
from service.access.owner import Owner
from service.records.sidecar import open_sidecar
from tests.browser.site import Site
from tests.browser.visitor import DESK, Visitor, visiting
from tests.helpers.signin import new_code

COPIED = """
() => {
  getSelection().selectAllChildren(document.documentElement);
  document.execCommand("copy");
  return navigator.clipboard.read().then(async ([item]) =>
    Promise.all(item.types.map(async (type) => (await item.getType(type)).text())));
}
"""
LINKS = "() => [...document.links].map((link) => link.href)"
KEPT = "() => localStorage.getItem('rung-session')"


@pytest.fixture
def owner(browser: Browser, site: Site) -> Iterator[Visitor]:
    """The owner after signing in."""
    with visiting(browser, site.base, DESK) as found:
        sign_in(found, site)
        yield found
        assert not found.complaints and not found.foreign_requests()


def sign_in(visitor: Visitor, site: Site) -> None:
    visitor.go(f"/owner/login?code={new_code(site.place)}")
    visitor.page.get_by_role("button", name="Sign in").click()
    signed_in(visitor.page)


def signed_in(page: Page) -> None:
    page.get_by_role("button", name="Sign out").wait_for()


def test_no_address_that_is_shown_or_copied_has_the_path(owner: Visitor, site: Site) -> None:
    page = owner.page
    path = page.evaluate(KEPT)
    for address in ("/owner", "/owner/grant", "/read?q=quorum", "/read/gmail-home/messages:m_0042"):
        owner.go(address)
        assert page.url == site.base + address
        assert path not in str(page.evaluate(LINKS)) and path not in str(page.evaluate(COPIED))
    owner.go("/read/notes/notes:cake")
    page.wait_for_function("() => document.querySelector('.files img').naturalWidth > 0")
    assert path not in str(page.evaluate(COPIED))
    page.wait_for_function("() => document.querySelector('.files img').naturalWidth > 0")
    owner.go("/read?q=quorum")
    page.locator("a.hit").first.click()
    page.locator("mark#match").wait_for()
    assert "/s/" not in page.url and page.url.endswith("#match")
    assert path not in str(page.evaluate(LINKS)) and page.evaluate("() => document.cookie") == ""
    referrers = [one.all_headers().get("referer", "") for one in owner.requests]
    assert any(referrers) and not any(path in one for one in referrers)


def test_links_stay_in_the_session_without_asking_at_plain_addresses(owner: Visitor) -> None:
    owner.go("/read?q=quorum")
    owner.page.locator("a.hit").first.wait_for()
    owner.requests.clear()
    owner.page.locator("a.hit").first.click()
    owner.page.locator("mark#match").wait_for()
    pages = [one.url for one in owner.requests if one.is_navigation_request()]
    assert len(pages) == 1 and "/s/" in pages[0]


def test_back_forward_reload_and_other_tabs_find_the_session(owner: Visitor, site: Site) -> None:
    page = owner.page
    owner.go("/read?q=quorum")
    page.locator("a.hit").first.click()
    page.locator("mark#match").wait_for()
    page.go_back()
    page.locator("a.hit").first.wait_for()
    page.go_forward()
    page.locator("mark#match").wait_for()
    page.reload()
    page.locator("mark#match").wait_for()
    page.go_back()
    page.go_back()
    signed_in(page)
    tab = page.context.new_page()
    tab.goto(f"{site.base}/read?q=quorum")
    with page.context.expect_page() as opened:
        tab.locator("a.hit").first.click(modifiers=["ControlOrMeta"])
    opened.value.locator("article").wait_for()
    assert "/s/" not in opened.value.url


def test_signing_out_forgets_the_path_in_every_tab(owner: Visitor, site: Site) -> None:
    tab = owner.page.context.new_page()
    tab.goto(f"{site.base}/read?q=quorum")
    tab.locator("a.hit").first.wait_for()
    owner.page.get_by_role("button", name="Sign out").click()
    owner.page.wait_for_url(f"{site.base}/")
    assert owner.page.evaluate(KEPT) is None and not owner.page.context.cookies()
    tab.locator("a.hit").first.click()
    tab.get_by_label("Token").wait_for()
    tab.go_back()
    tab.get_by_label("Token").wait_for()
    assert "/s/" not in tab.url


def test_a_session_that_has_ended_asks_again_and_goes_on_to_the_page(
    owner: Visitor, site: Site
) -> None:
    before = owner.page.evaluate(KEPT)
    Owner(Entries(open_sidecar(site.place))).set_passphrase("correct horse battery")
    owner.go("/owner/grant")
    owner.page.get_by_label("Code or passphrase").fill(new_code(site.place))
    assert owner.page.evaluate(KEPT) is None
    owner.page.get_by_role("button", name="Sign in").click()
    owner.page.get_by_role("heading", name="Create a grant").wait_for()
    assert owner.page.evaluate(KEPT) not in (None, before)


def test_a_tab_of_an_earlier_session_goes_on_to_the_new_one(owner: Visitor, site: Site) -> None:
    tab, before = owner.page.context.new_page(), owner.page.evaluate(KEPT)
    tab.goto(f"{site.base}/read?q=quorum")
    tab.locator("a.hit").first.wait_for()
    sign_in(owner, site)
    assert owner.page.evaluate(KEPT) != before
    assert len(owner.page.context.cookies()) == 1, "signing in ends the session before"
    tab.locator("a.hit").first.click()
    tab.locator("mark#match").wait_for()
    assert "/s/" not in tab.url
