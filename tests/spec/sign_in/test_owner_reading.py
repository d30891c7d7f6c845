"""The owner's session opens the reading pages, and no token appears anywhere."""

import requests

from tests.helpers.server import serving
from tests.helpers.signin import Browser, hidden, led_to, new_code
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import House

CLOSED = {"RUNG_SIGN_IN": "on", "RUNG_PAPERS_TOKENS": "a-token-of-the-library"}


def test_the_owner_reads_every_stream_without_a_token(browser: Browser, house: House) -> None:
    begun = browser.get("/read").text
    assert 'name="token"' not in begun and "signed in as the owner" in begun
    for row in house.api().rest("/v1/streams").body["data"]:
        assert f">{row['name']}</a></td>" in begun, row
    found = browser.get("/read?q=lantern")
    assert found.headers["Cache-Control"] == "private, no-store"
    assert 'class="hit"' in found.text and "rung_" not in found.text
    path = found.text.partition('class="hit" href="')[2].partition('"')[0]
    assert "<article" in browser.get(path.partition("#")[0]).text


def test_the_front_page_is_the_same_for_the_owner(browser: Browser, base: str) -> None:
    html = {"Accept": "text/html"}
    stranger, owner = Browser(base).get("/", **html), browser.get("/", **html)
    assert "records from" not in stranger.text and 'href="/owner"' in stranger.text
    assert owner.text == stranger.text


def test_the_session_opens_pages_only(browser: Browser) -> None:
    for path in ("/v1/streams", "/v1/search?q=lantern"):
        assert browser.get(path).status_code == 401
    for name, value in browser.session.cookies.items():
        headers = {"Authorization": f"Bearer {value}"}
        assert requests.get(f"{browser.base}/v1/streams", headers=headers).status_code == 401, name


def test_signing_in_leads_back_to_the_page_and_signing_out_ends_it(base: str, house: House) -> None:
    browser = Browser(base)
    form = browser.get("/read?q=lantern").text
    link = form.partition('href="/owner/login?')[2].partition('"')[0]
    onward = hidden(browser.get(f"/owner/login?{link}").text)["onward"]
    assert onward == "/read?q=lantern"
    code = {"code": new_code(house.path), "onward": onward}
    assert led_to(browser.post("/owner/login", code).text) == onward
    assert 'class="hit"' in browser.get(onward).text
    browser.post("/owner/logout", {"form": hidden(browser.get("/owner").text)["form"]})
    assert 'name="token"' in browser.get(onward).text


def test_a_token_that_is_entered_begins_a_session_of_its_own(
    browser: Browser, house: House
) -> None:
    one = house.api().rest("/v1/streams").body["data"][0]
    entry = {"connection_id": one["connection_id"], "stream": one["name"]}
    path = browser.path
    browser.post("/read", {"token": house.grant(entry)[1]})
    assert browser.path != path and browser.get("/read").text.count('class="count"') == 1
    assert "Sign out" not in browser.get("/owner").text
    browser.post("/read", {"leave": "1"})
    assert 'name="token"' in browser.get("/read").text


def test_the_owner_reads_a_closed_library(house: House) -> None:
    papers = {"RUNG_PAPERS_DB": str(DATA / "papers" / "snapshot.db")}
    environ = {**house.environment, **CLOSED, **papers, "RUNG_TRUSTED_PROXY_HOPS": "1"}
    with serving("wsgi:app", environ) as base:
        stranger, owner = Browser(base), Browser(base)
        owner.sign_in(new_code(house.path))
        assert 'name="token"' in stranger.get("/read/papers?q=tides").text
        assert 'class="hit"' in owner.get("/read/papers?q=tides").text


def test_without_sign_in_the_form_does_not_offer_it(house: House) -> None:
    assert "/owner/login" not in house.app.test_client().get("/read").text
