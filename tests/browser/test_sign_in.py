"""Signing in and deciding in a browser: by keyboard, on a phone, in the dark, to the very end."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from playwright.sync_api import Browser

from tests.browser.site import Site
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


def sign_in(visitor: Visitor, site: Site) -> None:
    visitor.tab_to("Code or passphrase")
    visitor.type(new_code(site.place))
    visitor.press("Enter")
    visitor.page.wait_for_selector("h1:has-text('Allow an application')")


@pytest.mark.parametrize("screen", [DESK, PHONE, DARK_PHONE], ids=str)
def test_the_owner_signs_in_ticks_and_is_led_back_by_keyboard(
    browser: Browser, site: Site, client: Client, callback: str, screen: Screen
) -> None:
    with visiting(browser, site.base, screen) as visitor:
        visitor.go(client.path(redirect_uri=callback))
        assert visitor.faults() == []
        sign_in(visitor, site)
        assert visitor.faults() == [] and not visitor.overflows()
        assert visitor.page.locator("input[name=stream]:checked").count() == 0
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
        assert visitor.faults() == [] and not visitor.overflows()
        visitor.page.get_by_role("button", name="Revoke Notebook").first.click()
        visitor.page.wait_for_load_state()
        assert call(site.base, got["access_token"]).status_code == 401


@pytest.mark.parametrize("screen", [DESK, PHONE, DARK_PHONE], ids=str)
def test_the_owner_reads_by_keyboard_without_a_token(
    browser: Browser, site: Site, screen: Screen
) -> None:
    with visiting(browser, site.base, screen) as visitor:
        visitor.go("/read?q=quorum+elm")
        visitor.tab_to("Sign in as the owner")
        visitor.press("Enter")
        visitor.page.wait_for_url("**/owner/login?*")
        visitor.tab_to("Code or passphrase")
        visitor.type(new_code(site.place))
        visitor.press("Enter")
        visitor.page.locator("a.hit").first.wait_for()
        assert "q=quorum" in visitor.page.url, "the search comes after signing in"
        for path in ("/read", "/read/gmail-home/messages:m_0001", "/", "/owner"):
            visitor.go(path)
            assert visitor.faults() == [] and not visitor.overflows(), path
        assert not visitor.complaints
