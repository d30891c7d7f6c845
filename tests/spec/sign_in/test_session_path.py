"""A session needs both its path and its cookie, and no other program gets the path."""

import re
import pytest
import requests

from service.pages import session_path
from service.signin.redirects import elsewhere
from tests.helpers.operated import operated
from tests.helpers.server import serving
from tests.helpers.signin import REGISTRATION, SAME, Browser, Client, begun_at, new_code
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import House

#: The pages of a session, as plain addresses.
PAGES = ("/owner", "/owner/grant", "/read", "/read?q=lantern", "/read/mail-work/messages:m0")
SECRET = re.compile("/s/[A-Za-z0-9_-]+")


def is_in(answer: requests.Response) -> bool:
    """Whether an answer is more than a page to sign in with."""
    return answer.status_code != 404 and not re.search('/owner/login|name="token"', answer.text)


def test_path_and_cookie_open_nothing_alone(browser: Browser) -> None:
    [cookie] = browser.session.cookies
    assert cookie.path == browser.path and re.fullmatch(r"/s/[\w-]{22}", browser.path)
    assert cookie.value
    value = {cookie.name: cookie.value}
    for page in PAGES[:4]:
        assert is_in(browser.get(page)), page
        for path in (browser.path, "", session_path.new(), "/s", f"{browser.path}x"):
            cookies = {} if path == browser.path else value
            found = requests.get(f"{browser.base}{path}{page}", cookies=cookies)
            assert not is_in(found), (path, page)


def test_cookies_are_only_for_their_path(base: str, house: House) -> None:
    answer = Browser(base).sign_in(new_code(house.path))
    form = {"token": house.grant()[1], "to": "/read"}
    entered = Browser(base).post("/read", form)
    for page in (answer, entered):
        sent = page.headers["Set-Cookie"]
        assert f"Path={begun_at(page.text)};" in f"{sent};" and sent.count("/s/") == 1
        assert "HttpOnly" in sent and "SameSite=Lax" in sent and "Domain" not in sent


def test_with_tls_cookies_are_secure(house: House) -> None:
    secure = {"RUNG_PUBLIC_URL": "https://rung.example.com", "RUNG_SIGN_IN": "on"}
    visitor = house.application(**secure).test_client()
    headers = {"Host": "rung.example.com", **SAME}
    code = {"code": new_code(house.path)}
    begun = visitor.post("/owner/login", data=code, headers=headers)
    sent = begun.headers["Set-Cookie"]
    assert sent.startswith("__Secure-rung_owner=") and "; Secure" in sent
    assert f"Path={begun_at(begun.text)}" in sent


def test_every_sign_in_begins_below_a_new_path(browser: Browser, house: House) -> None:
    """A page below a path that somebody else chose sends its form there."""
    path = session_path.new()
    for form in ("/owner/login", {"code": new_code(house.path)}), (
        "/read",
        {"token": house.grant()[1]},
    ):
        begun = browser.session.post(f"{browser.base}{path}{form[0]}", form[1], headers=SAME)
        assert begun_at(begun.text) not in ("", path)
        assert f"Path={path}" not in begun.headers.get("Set-Cookie", "")


def test_a_new_sign_in_and_signing_out_end_the_session_before(
    browser: Browser, house: House
) -> None:
    first = browser.path
    [cookie] = browser.session.cookies
    browser.sign_in(new_code(house.path))
    old = {cookie.name: str(cookie.value)}
    assert not is_in(requests.get(f"{browser.base}{first}/owner", cookies=old))
    page = browser.get("/owner").text
    [cookie] = browser.session.cookies
    path = browser.path
    form = {"form": page.partition('name="form" value="')[2].partition('"')[0]}
    ended = browser.post("/owner/logout", form)
    assert 'data-act="end"' in ended.text and not list(browser.session.cookies)
    old = {cookie.name: str(cookie.value)}
    assert not is_in(requests.get(f"{browser.base}{path}/owner", cookies=old))


def test_a_plain_address_is_the_same_page_for_everyone(browser: Browser, base: str) -> None:
    [cookie] = browser.session.cookies
    for page in PAGES:
        stranger = requests.get(base + page)
        assert 'data-act="seek"' in stranger.text and "/s/" not in stranger.text
        owner = requests.get(base + page, cookies={cookie.name: str(cookie.value)})
        assert owner.text == stranger.text


def test_no_header_has_the_path(browser: Browser) -> None:
    for page in (*PAGES, "/read/nothing:here", "/owner/none", "/read/blob?blob=none"):
        answer = browser.get(page)
        assert "/s/" not in str(answer.headers) and answer.headers["Referrer-Policy"] in (
            "strict-origin",
            "no-referrer",
        )
        assert "no-store" in answer.headers["Cache-Control"]
    for page in ("/owner/revoke", "/owner/passkey", "/owner/grant", "/owner/logout"):
        assert "/s/" not in str(browser.post(page, {"form": "x"}).headers)


def test_plain_addresses_are_the_ones_to_keep(browser: Browser) -> None:
    hit = browser.get("/read?q=lantern").text.partition('class="hit" href="')[2].partition('"')[0]
    assert hit.startswith(browser.path)
    page = browser.get(hit.removeprefix(browser.path).partition("#")[0]).text
    kept = page.partition("Permanent link")[2].partition("</p>")[0]
    assert 'href="/read/' in kept and "/s/" not in kept


def test_no_log_has_the_path(house: House) -> None:
    environ = {**house.environment, "RUNG_SIGN_IN": "on", "RUNG_LOG_LEVEL": "debug"}
    with operated(environ) as server:
        base = server.url
        owner = Browser(base, house.path)
        owner.sign_in(new_code(house.path))
        reader = Browser(base)
        reader.post("/read", {"token": house.grant()[1]})
        for browser in (owner, reader):
            for page in (*PAGES, "/read/nothing:here", "/owner/none", "/read/blob?blob=none"):
                browser.get(page)
            browser.post("/owner/revoke", {"form": "x"})
            requests.request("BREW", f"{base}{browser.path}/owner")
            requests.get(f"{base}{browser.path}/owner", headers={"X": "x" * 70_000})
            requests.get(f"{base}{browser.path}/nothing")
        logged = server.said()
    assert '"route":"/owner"' in logged and '"route":"none"' in logged
    for browser in (owner, reader):
        assert browser.path.removeprefix("/s/") not in logged


@pytest.mark.parametrize(
    "uri",
    ["https://rung.example.com/callback", "https://RUNG.example.com:8443/callback"],
)
def test_with_tls_no_client_is_on_the_host_of_rung(house: House, uri: str) -> None:
    secure = {"RUNG_PUBLIC_URL": "https://rung.example.com", "RUNG_SIGN_IN": "on"}
    visitor = house.application(**secure).test_client()
    headers = {"Host": "rung.example.com"}
    metadata = {**REGISTRATION, "redirect_uris": ["https://app.example.com/x", uri]}
    refused = visitor.post("/register", json=metadata, headers=headers)
    assert refused.status_code == 400 and refused.json is not None
    assert refused.json["error"] == "invalid_redirect_uri"
    # One that registered before TLS was switched on.
    plain = house.application(RUNG_SIGN_IN="on").test_client()
    made = plain.post("/register", json={**metadata, "redirect_uris": [uri]})
    assert made.status_code == 201 and made.json is not None
    client = Client("https://rung.example.com", id=made.json["client_id"])
    path = client.path(redirect_uri=uri)
    code = {"code": new_code(house.path)}
    asked = visitor.post(path, data=code, headers={**headers, **SAME})
    assert asked.status_code == 400 and "http-equiv" not in asked.text


@pytest.mark.parametrize(
    ("base", "ours", "others"),
    [
        (
            "https://192.0.2.1",
            ["https://192.0.2.1:1/", "https://0xc0000201/", "https://3221225985/"],
            [],
        ),
        ("https://[2001:db8::1]", ["https://[2001:DB8:0::1]:2/"], ["https://[2001:db8::2]/"]),
        ("https://localhost", ["http://localhost:9/x"], ["http://127.0.0.1:9/x", "app:/x"]),
        ("http://localhost:8000", [], ["http://localhost:9/x"]),
        (
            "https://a.example",
            ["https://A.example:1/"],
            ["https://b.a.example/", "https://a.example.org/"],
        ),
    ],
)
def test_hosts_are_compared_as_browsers_spell_them(
    base: str, ours: list[str], others: list[str]
) -> None:
    assert list(elsewhere([*ours, *others], base)) == others


def test_a_reader_of_both_surfaces_has_one_session(house: House) -> None:
    papers = {
        "RUNG_PAPERS_DB": str(DATA / "papers" / "snapshot.db"),
        "RUNG_PAPERS_TOKENS": "a-token-of-the-library",
    }
    with serving("wsgi:app", {**house.environment, **papers}) as base:
        reader = Browser(base)
        reader.post("/read", {"token": house.grant()[1]})
        first = reader.path
        form = reader.get("/read/papers").text
        assert 'name="token"' in form and "seek" not in form, "the session of records remains"
        reader.post("/read", {"token": "a-token-of-the-library", "surface": "papers"})
        assert reader.path != first
        assert is_in(reader.get("/read?q=lantern")) and is_in(reader.get("/read/papers"))
        ended = reader.post("/read", {"leave": "1"})
        assert 'data-act="end"' in ended.text and not list(reader.session.cookies)
