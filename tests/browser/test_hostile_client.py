"""A client with a grant of one stream, on a port of Rung's host, gets no session of anyone.

It gets the browser after an ordinary sign-in, and from then on sends it wherever it likes.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import product
from typing import Any, Protocol

import pytest
import requests
from playwright.sync_api import Browser, Page

from tests.browser import firefox, hostile
from tests.browser.hostile import HOSTS, Hostile
from tests.helpers import worlds
from tests.helpers.server import serving
from tests.helpers.signin import MAIL, REGISTRATION, Client, new_code
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House

ON = {"RUNG_SIGN_IN": "on", "RUNG_WORK_SECONDS": "100000", "RUNG_RATE_LIMIT_FAILURES": "off"}
#: Hosts where Rung is reached, and who has a session there.
OWNERS, READER = ("127.0.0.1", "rung.localhost"), "localhost"
OWNED, ENTERED = 'form[action$="/owner/logout"]', "form.leave"
SESSION_PAGES = ("/owner", "/owner/grant", "/read", "/read?q=lantern")
PATH = "localStorage.getItem('rung-session')"
SUBMIT = "document.querySelector('main form').submit()"
FILL = "document.querySelector('[name={}]').value = '{}'"
SIGN_IN = '/owner/login"|name="token"'
#: Not a session: shows that cookies of the host do reach the client.
CONTROL = "document.cookie = 'control=1; path=/'"


class Driven(Protocol):
    """A browser: opens pages, waits for an element, evaluates an expression."""

    def go(self, url: str) -> None: ...
    def wait(self, selector: str) -> None: ...
    def run(self, script: str) -> Any: ...


class Chromium:
    """Debian's Chromium."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def go(self, url: str) -> None:
        self._page.goto(url)

    def wait(self, selector: str) -> None:
        self._page.wait_for_selector(selector, state="attached", timeout=4 * WAIT_SECONDS * 1_000)

    def run(self, script: str) -> Any:
        return self._page.evaluate(script)


@contextmanager
def chromium(browser: Browser) -> Iterator[Driven]:
    """A page of the shared browser with its own cookies: Playwright runs once in a process."""
    with closing(browser.new_context()) as context:
        yield Chromium(context.new_page())


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def base(house: House) -> Iterator[str]:
    with serving("wsgi:app", {**house.environment, **ON}, workers=2) as found:
        yield found


@pytest.fixture
def attacker(house: House, base: str) -> Iterator[Hostile]:
    rules = house.application(**ON).url_map.iter_rules()
    paths = sorted({re.sub("<[^>]*>", "x", rule.rule) for rule in rules})
    assert {"/owner", "/read", "/mcp", "/authorize"} < set(paths)
    with hostile.listening(int(base.rpartition(":")[2]), paths) as found:
        yield found


def sign_in(browser: Driven, house: House, base: str) -> None:
    browser.go(f"{base}/owner/login?code={new_code(house.path)}")
    browser.run(SUBMIT)
    browser.wait(OWNED)
    browser.run(CONTROL)


def enter(browser: Driven, house: House, base: str) -> None:
    browser.go(f"{base}/read")
    browser.run(FILL.format("token", house.grant()[1]))
    browser.run(SUBMIT)
    browser.wait(ENTERED)
    browser.run(CONTROL)


def allow(browser: Driven, house: House, base: str, redirect: str) -> None:
    """Lets the client read one stream; the browser goes on to it."""
    client = Client(base, {**REGISTRATION, "redirect_uris": [redirect]}).register()
    browser.go(base + client.path(redirect_uri=redirect))
    browser.run(FILL.format("code", new_code(house.path)))
    browser.run(SUBMIT)
    browser.wait('button[value="allow"]')
    boxes = "[...document.querySelectorAll('[name=stream]')]"
    browser.run(f"{boxes}.find((box) => box.value === {json.dumps(MAIL)}).checked = true")
    browser.run("document.querySelector('button[value=allow]').click()")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_client_on_the_same_host_gets_no_session(
    name: str,
    browser: Browser,
    house: House,
    base: str,
    attacker: Hostile,
    record_property: Callable[[str, object], None],
) -> None:
    bases = {host: base.replace("127.0.0.1", host) for host in HOSTS}
    client = f"http://127.0.0.1:{attacker.port}"
    paths = []
    with chromium(browser) if name == "chromium" else firefox.running() as driven:
        for host in OWNERS:
            sign_in(driven, house, bases[host])
            paths.append(driven.run(PATH))
        enter(driven, house, bases[READER])
        paths.append(driven.run(PATH))
        allow(driven, house, base, f"{client}/callback?hop=0")
        driven.wait("#done")
        # Links on the pages of the sessions, and frames, requests and forms on those of the client.
        for host, page, inside in (
            *((host, "/owner", OWNED) for host in OWNERS),
            *((host, "/read?q=lantern", "a.hit") for host in (*OWNERS, READER)),
        ):
            driven.go(bases[host] + page)
            driven.wait(inside)
            link = f"http://{host}:{attacker.port}/linked"
            driven.run(f"location.assign('{link}')")
            driven.wait("p.client")
        for host in HOSTS:
            driven.go(f"http://{host}:{attacker.port}/x?reach=1")
            driven.wait("#done")
        for host in OWNERS:
            driven.go(f"{bases[host]}/owner")
            driven.wait(OWNED)  # a session that was not ended
        driven.go(f"{bases[READER]}/read")
        driven.wait(ENTERED)
    assert all(re.fullmatch(r"/s/[\w-]{22}", path) for path in paths) and len(set(paths)) == 3
    received = attacker.all
    for secret in (*paths, "rung_owner=", "rung_records="):
        assert secret not in received
    assert any("control=1" in cookie for cookie in attacker.cookies), "cookies do arrive"
    for host in (*OWNERS, READER):
        assert f"Host: {host}:{attacker.port}" in received
    assert opens_only_the_sign_in_page(base, attacker)
    record_property("pages and requests that reached the client", len(attacker.received))
    record_property("pages to which the client sent the browser", len(attacker.hops()))


def opens_only_the_sign_in_page(base: str, attacker: Hostile) -> bool:
    """Whether each page of a session asks for a sign-in, with all that the client received."""
    prefixes = {"", *re.findall(r"/s/[^/\s\"]+", attacker.all)}
    for page in SESSION_PAGES:
        for prefix, cookie in product(prefixes, attacker.cookies):
            found = requests.get(base + prefix + page, headers={"Cookie": cookie})
            if found.status_code != 404 and not re.search(SIGN_IN, found.text):
                return False
    return True
