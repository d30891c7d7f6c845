"""`/read`: records and papers, at every screen, by keyboard, without JavaScript."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.reading import enter, kinds, open_kind
from tests.browser.site import Site
from tests.browser.visitor import DARK_DESK, DARK_PHONE, DESK, PHONE, Visitor, visiting

EVERY_SCREEN = pytest.mark.parametrize("screen", [PHONE, DESK, DARK_PHONE, DARK_DESK], ids=str)
PHONE_AND_DESK = pytest.mark.parametrize("screen", [PHONE, DESK], ids=str)
LONG = "/read/gmail-home/messages:m_0042"


@pytest.fixture
def plain(browser: Browser, site: Site) -> Iterator[Visitor]:
    """A visitor whose browser runs no JavaScript."""
    with visiting(browser, site.base, DESK, scripts=False) as found:
        yield found
        assert not found.complaints and not found.foreign_requests()


def checked(visitor: Visitor) -> None:
    """What holds for each page at each screen."""
    assert visitor.page.locator("h1").count() == 1
    assert not visitor.faults()
    assert not visitor.overflows()


@EVERY_SCREEN
def test_the_pages_have_no_serious_fault_and_fit_the_screen(visitor: Visitor, site: Site) -> None:
    visitor.go("/read")
    checked(visitor)
    enter(visitor, site.token)
    checked(visitor)
    listed = ("/read?since=2020-01-01", "/read?stream=messages&source=gmail-home")
    found = ("/read?q=the+invoice&since=2020-01-01", "/read?q=qqqzzz", f"{LONG}?q=quorum")
    for path in (*listed, *found):
        visitor.go(path)
        checked(visitor)
    for stream in kinds(site):
        open_kind(visitor, site, stream)
        checked(visitor)
    visitor.go("/read/papers")
    checked(visitor)
    visitor.go("/read/papers?q=tides")
    checked(visitor)
    visitor.page.locator("a.hit").first.click()
    visitor.page.get_by_role("link", name="Text", exact=True).click()
    visitor.page.wait_for_url("**text=source*")
    checked(visitor)


@PHONE_AND_DESK
def test_a_record_is_found_and_read_by_keyboard_only(visitor: Visitor, site: Site) -> None:
    visitor.go("/")
    visitor.tab_to("Search records")
    visitor.type("quorum elm")
    visitor.press("Enter")
    visitor.page.wait_for_url("**/read?q=*")
    visitor.tab_to("Token")
    visitor.type(site.token)
    visitor.press("Enter")
    visitor.page.locator("a.hit").first.wait_for()
    assert "q=quorum" in visitor.page.url, "the search comes after the token"
    visitor.press("j")
    title = visitor.focused()
    visitor.press("Enter")
    visitor.page.locator("mark#match").wait_for()
    assert visitor.page.locator("h1").inner_text() == title
    visitor.tab_to("Next part")
    visitor.press("Enter")
    visitor.page.get_by_role("link", name="Previous part").wait_for()
    visitor.press("/")
    visitor.page.wait_for_url("**/read")
    assert visitor.focused() == "Search"


def test_a_stream_is_browsed_by_keyboard_in_the_zone_of_the_reader(
    browser: Browser, site: Site
) -> None:
    with visiting(browser, site.base, DESK, zone="Asia/Dubai") as visitor:
        visitor.go("/read")
        enter(visitor, site.token)
        visitor.page.locator("#held").focus()
        visitor.press("j")
        visitor.press("Enter")
        visitor.page.wait_for_url("**stream=*")
        visitor.go("/read?stream=messages&source=gmail-home")
        assert "Asia/Dubai" in visitor.page.locator("#zone").inner_text()
        time = visitor.page.locator("time", has_text=":").first
        assert time.inner_text().endswith((" GST", " GMT+4"))
        assert "UTC" in str(time.get_attribute("title")), "the zone of the record"
        shown = visitor.page.locator("a.hit").first.inner_text()
        visitor.press("n")
        visitor.page.wait_for_url("**cursor=*")
        visitor.press("j")
        assert visitor.focused() != shown
        visitor.press("Enter")
        visitor.page.locator("article").wait_for()


def test_everything_works_without_javascript(plain: Visitor, site: Site) -> None:
    plain.go("/read?q=quorum+elm")
    enter(plain, site.token)
    plain.page.get_by_text("Filters", exact=True).click()
    plain.page.get_by_label("Order").select_option("newest")
    plain.page.get_by_role("button", name="Search").click()
    plain.page.wait_for_url("**sort=newest*")
    assert "each record's time zone" in plain.page.locator("#zone").inner_text()
    plain.page.locator("a.hit").first.click()
    plain.page.locator("mark#match").wait_for()
    plain.page.get_by_text("The tool calls behind this page").click()
    assert plain.page.get_by_role("link", name="Run fetch").is_visible()
    plain.page.get_by_role("button", name="End this session").click()
    plain.page.get_by_label("Token").wait_for()
    plain.go("/read?q=quorum")
    assert plain.page.get_by_label("Token").is_visible()


def test_the_token_is_in_no_address_and_no_storage(visitor: Visitor, site: Site) -> None:
    visitor.go("/read?q=quorum")
    enter(visitor, site.token)
    visitor.page.locator("a.hit").first.click()
    visitor.page.wait_for_load_state()
    found = visitor.places_of(site.token)
    assert found == [f"a request to {visitor.base}/read"], "the form, once"
    assert visitor.page.evaluate("() => document.cookie") == ""


def test_markup_in_records_does_not_act(visitor: Visitor, site: Site) -> None:
    visitor.go("/read?q=zebra")
    enter(visitor, site.forged_token)
    assert "<script>" in visitor.page.locator("main").inner_text()
    visitor.page.locator("a.hit").first.click()
    visitor.page.locator("mark#match").wait_for()
    assert "<script>" in visitor.page.locator("article").inner_text()
    assert visitor.page.evaluate("() => window.marked") is None


def test_a_page_leads_to_the_same_call_at_try(visitor: Visitor, site: Site) -> None:
    visitor.go("/read?q=quorum+elm")
    enter(visitor, site.token)
    shown = visitor.page.locator("a.hit").first.inner_text()
    visitor.page.get_by_text("The tool calls behind this page").click()
    visitor.page.get_by_role("link", name="Run search").click()
    visitor.page.wait_for_url("**/try?*")
    visitor.page.get_by_label("Token for records").fill(site.token)
    visitor.page.get_by_role("button", name="Call search").click()
    visitor.page.locator("#calls > li").wait_for()
    assert shown in visitor.page.locator("main").inner_text()


def test_a_printed_record_has_its_text_and_no_controls(visitor: Visitor, site: Site) -> None:
    visitor.go(f"{LONG}?q=quorum")
    enter(visitor, site.token)
    visitor.page.emulate_media(media="print")
    assert visitor.page.locator("article .prose").is_visible()
    for hidden in ("nav[aria-label=Pages]", "form.leave", ".agents"):
        assert not visitor.page.locator(hidden).is_visible()
