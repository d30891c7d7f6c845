"""Signing in and deciding in a browser: by keyboard, on a phone, in the dark, to the very end."""

from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from playwright.sync_api import Browser

from tests.browser.site import Site, serving_site
from tests.browser.visitor import DARK_PHONE, DESK, PHONE, Screen, Visitor, visiting
from tests.helpers.signin import REGISTRATION, Client, call, new_code

NOTES = '["notes","notes"]'


@pytest.fixture
def callback() -> Iterator[str]:
    """The redirect URI of a client, with a page of its own behind it."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>back</title>back")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/callback"
        server.shutdown()


@pytest.fixture
def client(site: Site, callback: str) -> Client:
    return Client(site.base, {**REGISTRATION, "redirect_uris": [callback]}).register()


def enter_code(visitor: Visitor, site: Site) -> None:
    visitor.tab_to("Code or passphrase")
    visitor.type(new_code(site.place))
    visitor.press("Enter")


def prove(visitor: Visitor, site: Site) -> None:
    enter_code(visitor, site)
    visitor.page.wait_for_selector("h1:has-text('Allow an application')")


@pytest.mark.parametrize("screen", [DESK, PHONE, DARK_PHONE], ids=str)
def test_the_owner_signs_in_ticks_and_is_led_back_by_keyboard(
    browser: Browser, site: Site, client: Client, callback: str, screen: Screen
) -> None:
    with visiting(browser, site.base, screen) as visitor:
        visitor.go(client.path(redirect_uri=callback))
        assert visitor.faults() == []
        prove(visitor, site)
        assert visitor.faults() == [] and not visitor.overflows()
        assert visitor.page.locator("input[type=checkbox]:checked").count() == 0
        visitor.tab_to("Notes")
        visitor.press("Space")
        visitor.tab_to("Allow")
        visitor.press("Enter")
        visitor.page.wait_for_url(f"{callback}?*")
        back = parse_qs(urlsplit(visitor.page.url).query)
        assert back["iss"] == [site.base] and back["state"] == ["st&te"]
        got = client.token(back["code"][0], redirect_uri=callback).json()
        assert call(site.base, got["access_token"]).status_code == 200
        assert not [one for one in visitor.complaints if "favicon" not in one]
        visitor.go("/owner")
        assert visitor.page.get_by_role("button", name="Sign out").count() == 0
        enter_code(visitor, site)
        visitor.page.get_by_role("button", name="Sign out").wait_for()
        assert visitor.faults() == [] and not visitor.overflows()
        visitor.page.get_by_role("button", name="Revoke Notebook").first.click()
        visitor.page.wait_for_load_state()
        assert call(site.base, got["access_token"]).status_code == 401


@pytest.fixture(scope="module")
def named_site() -> Iterator[Site]:
    """A site with a host name, as passkeys require."""
    with serving_site(RUNG_PUBLIC_URL="http://localhost:{port}") as found:
        yield replace(found, base=found.base.replace("127.0.0.1", "localhost"))


@pytest.mark.parametrize("screen", [DESK, DARK_PHONE], ids=str)
def test_the_owner_adds_a_passkey_signs_in_and_removes_it_by_keyboard(
    browser: Browser, named_site: Site, screen: Screen
) -> None:
    with visiting(browser, named_site.base, screen) as visitor:
        page, device = visitor.page, visitor.page.context.new_cdp_session(visitor.page)
        device.send("WebAuthn.enable")
        about = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True}
        about |= {"hasUserVerification": True, "isUserVerified": True}
        device.send("WebAuthn.addVirtualAuthenticator", {"options": about})
        visitor.go(f"/owner/login?code={new_code(named_site.place)}")
        visitor.tab_to("Sign in")
        visitor.press("Enter")
        page.wait_for_url("**/owner")
        visitor.tab_to("Name, such as")
        visitor.type("Laptop")
        enter_code(visitor, named_site)
        page.get_by_text("never used").wait_for()
        assert visitor.faults() == [] and not visitor.overflows()
        enter_code(visitor, named_site)
        page.get_by_text("This device already has a passkey").wait_for()
        page.goto(f"{named_site.base}/owner/grant")
        assert visitor.faults() == [] and not visitor.overflows()
        visitor.tab_to("Notes")
        visitor.press("Space")
        visitor.tab_to("Create with a passkey")
        visitor.press("Enter")
        page.get_by_role("heading", name="Token for this grant").wait_for()
        visitor.go("/owner")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{named_site.base}/")
        visitor.go("/read?q=quorum")
        visitor.tab_to("Sign in as the owner")
        visitor.press("Enter")
        page.get_by_role("button", name="Sign in with a passkey").wait_for()
        assert visitor.faults() == [] and not visitor.overflows()
        visitor.tab_to("Sign in with a passkey")
        visitor.press("Enter")
        page.locator("a.hit").first.wait_for()
        visitor.go("/owner")
        visitor.tab_to("Remove Laptop")
        visitor.press("Enter")
        visitor.tab_to("Remove with a passkey")
        visitor.press("Enter")
        page.get_by_text("Remove Laptop").wait_for(state="detached")
        page.get_by_label("Code or passphrase").wait_for()
        assert page.get_by_role("button", name="Sign in with a passkey").count() == 0
        assert not visitor.complaints


def test_without_scripts_the_owner_signs_in_with_a_code_all_the_same(
    browser: Browser, named_site: Site
) -> None:
    with visiting(browser, named_site.base, DESK, scripts=False) as visitor:
        visitor.go(f"/owner/login?code={new_code(named_site.place)}")
        visitor.page.get_by_role("button", name="Sign in").click()
        visitor.page.get_by_text("you need JavaScript").wait_for()
        assert not visitor.page.get_by_role("button", name="Add a passkey").is_visible()


FRAMED = """
(url) => {
  const frame = document.createElement("iframe");
  frame.src = url;
  document.body.append(frame);
  return new Promise((loaded) => { frame.onload = loaded; });
}
"""


def test_another_site_that_frames_a_page_shows_nothing_of_it(
    browser: Browser, site: Site, client: Client, callback: str
) -> None:
    with visiting(browser, site.base, DESK) as visitor:
        visitor.go(f"/owner/login?code={new_code(site.place)}")
        visitor.page.get_by_role("button", name="Sign in").click()
        visitor.page.wait_for_url("**/owner")
        for path in ("/owner", "/owner/grant", client.path(redirect_uri=callback)):
            visitor.go(path)
            assert visitor.page.locator("form").count()
            visitor.page.goto(callback)
            visitor.page.evaluate(FRAMED, site.base + path)
            frame = visitor.page.frames[1]
            assert frame.url.startswith("chrome-error:") and not frame.locator("form").count()
            assert any("frame-ancestors" in one for one in visitor.complaints), path
            visitor.complaints.clear()


@pytest.fixture(scope="module")
def other_site() -> Iterator[Site]:
    """A site nobody has signed in to: one address may try five times in 15 minutes."""
    with serving_site() as found:
        yield found


@pytest.mark.parametrize("screen", [DESK, PHONE, DARK_PHONE], ids=str)
def test_the_owner_reads_by_keyboard_without_a_token(
    browser: Browser, other_site: Site, screen: Screen
) -> None:
    with visiting(browser, other_site.base, screen) as visitor:
        visitor.go("/read?q=quorum+elm")
        visitor.tab_to("Sign in as the owner")
        visitor.press("Enter")
        visitor.page.wait_for_url("**/owner/login?*")
        visitor.tab_to("Code or passphrase")
        visitor.type(new_code(other_site.place))
        visitor.press("Enter")
        visitor.page.locator("a.hit").first.wait_for()
        assert "q=quorum" in visitor.page.url, "the search comes after signing in"
        for path in ("/read", "/read/gmail-home/messages:m_0001", "/", "/owner"):
            visitor.go(path)
            assert visitor.faults() == [] and not visitor.overflows(), path
        assert not visitor.complaints
