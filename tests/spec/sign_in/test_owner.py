"""How the owner signs in, decides what to share, and ends it."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

import pytest
import requests
from click.testing import CliRunner

from service.__main__ import rung
from service.access.owner import TRIES
from service.records.sidecar import open_sidecar
from service.place import spelled
from service.records.intake import Row
from tests.helpers import worlds
from tests.helpers.server import serving
from tests.helpers.signin import (
    MAIL,
    Browser,
    Client,
    address,
    answer,
    call,
    inputs,
    led_to,
    new_code,
    run_command,
    signed_in,
)
from tests.helpers.worlds import House


@pytest.mark.parametrize("path", ["/owner", "/owner/login", "/owner/grant", "/authorize?x=1"])
def test_pages_of_the_owner_are_not_framed_kept_or_given_away(browser: Browser, path: str) -> None:
    headers = browser.get(path).headers
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY" and headers["Cache-Control"] == "no-store"
    inside = path.startswith("/owner")
    assert headers["Referrer-Policy"] == ("strict-origin" if inside else "same-origin")


def test_strangers_cannot_lock_the_owner_out(tmp_path: Path) -> None:
    """All callers share an address, as they do behind no proxy."""
    house = worlds.build(worlds.two_mailboxes(), tmp_path)
    with serving("wsgi:app", {**house.environment, "RUNG_SIGN_IN": "on"}, workers=2) as base:
        stranger = Browser(base)
        for _ in range(TRIES + 10):
            assert stranger.sign_in(token_hex(10)).status_code == 401, "a code is looked up"
        statuses = [stranger.sign_in("a passphrase").status_code for _ in range(2 * TRIES + 1)]
        assert statuses[:TRIES] == [401] * TRIES and 429 in statuses
        refused = stranger.sign_in("another passphrase")
        assert refused.status_code == 429 and int(refused.headers["Retry-After"]) > 0
        assert "rung owner link" in refused.text
        assert Browser(base).sign_in(f" {new_code(house.path).upper()} ").status_code == 200


def test_a_passphrase_does_not_look_like_a_code(house: House) -> None:
    command = ["owner", "passphrase", "--stdin", "--store", spelled(house.path)]
    refused = CliRunner().invoke(rung, command, input=f"{token_hex(10).upper()}\n")
    assert refused.exit_code == 1 and "looks like a code" in refused.output


def test_a_link_shows_a_button_and_works_once(base: str, house: House) -> None:
    link = run_command(house, "owner", "link", "--url", base).splitlines()[-1]
    code = link.partition("code=")[2]
    browser = Browser(base)
    for _ in range(2):
        assert browser.session.get(link).status_code == 200
    assert not browser.session.cookies
    assert browser.sign_in(code).status_code == 200
    before, path = dict(browser.session.cookies), browser.path
    assert Browser(base).sign_in(code).status_code == 401
    browser.sign_in(new_code(house.path))
    assert dict(browser.session.cookies) != before and browser.path != path
    old = requests.get(
        f"{base}{path}/owner", cookies=before, headers={"X-Forwarded-For": address()}
    )
    assert "Sign out" in browser.get("/owner").text and "Sign out" not in old.text


def test_the_cookie_of_the_owner_lasts_as_long_as_a_session_that_is_used(browser: Browser) -> None:
    expires = [one.expires for one in browser.session.cookies if one.name == "rung_owner"]
    assert expires and all(time > datetime.now(UTC).timestamp() + 14 * 86_400 for time in expires)


def test_no_other_site_signs_a_browser_in(base: str, house: House) -> None:
    browser, form = Browser(base), {"code": new_code(house.path), "onward": "/owner"}
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert browser.post("/owner/login", form, **headers).status_code == 403
    assert not browser.session.cookies and browser.post("/owner/login", form).status_code == 200


def test_a_passphrase_signs_in_and_a_new_one_ends_sessions(base: str, house: House) -> None:
    invoke = CliRunner().invoke
    place = ["--store", spelled(house.path)]
    command = ["owner", "passphrase", "--stdin", *place]
    assert invoke(rung, command, input="short\n").exit_code == 1
    assert invoke(rung, command, input="correct horse battery\n").exit_code == 0
    browser = Browser(base)
    assert browser.sign_in("correct horse").status_code == 401
    assert browser.sign_in("correct horse battery").status_code == 200
    assert "Sign out" in browser.get("/owner").text
    assert invoke(rung, command, input="another horse battery\n").exit_code == 0
    assert "Sign out" not in browser.get("/owner").text


@pytest.mark.parametrize(
    "onward", ["https://evil.example", "//evil.example", "/\\evil.example", "/owner\r\nX: y"]
)
def test_signing_in_leads_to_our_own_pages_only(base: str, house: House, onward: str) -> None:
    form = {"code": new_code(house.path), "onward": onward}
    assert led_to(Browser(base).post("/owner/login", form).text) == "/owner"


def test_the_owner_narrows_fields_and_dates(base: str, browser: Browser, client: Client) -> None:
    page = browser.prove(client.path()).text
    form = browser.fill(page, MAIL, decision="allow", since="2026-03-05")
    boxes = [one["value"] for one in inputs(page) if one.get("name") == "field"]
    prefix = MAIL.removesuffix("]")
    form += [
        ("field", value)
        for value in boxes
        if value.startswith(prefix) and value != f'{prefix},"body"]'
    ]
    token = client.token(answer(browser.post(client.path(), form))["code"]).json()["access_token"]
    rows = call(base, token, "/v1/streams/messages/records?limit=100").json()["data"]
    assert rows and all(row["data"]["received_at"] >= "2026-03-05" for row in rows)
    assert not [row for row in rows if "body" in row["data"]]


def test_a_form_without_a_tick_says_what_is_missing(browser: Browser, client: Client) -> None:
    refused = browser.allow(client.path())
    assert refused.status_code == 400 and "Nothing is selected" in refused.text
    undated = browser.allow(client.path(), '["mail-work","threads"]', since="2026-03-05")
    assert undated.status_code == 400 and "have no dates" in undated.text


def test_the_owner_shares_everything_by_one_tick(
    base: str, browser: Browser, client: Client
) -> None:
    code = answer(browser.allow(client.path(), everything="yes"))["code"]
    token = client.token(code).json()["access_token"]
    listed = call(base, token, "/v1/streams").json()["data"]
    assert len(listed) == len(re.findall('name="stream"', browser.get("/owner/grant").text))
    asked = client.path(authorization_details=details(fields=["id"]))
    code = answer(browser.allow(asked, everything="yes"))["code"]
    token = client.token(code).json()["access_token"]
    rows = call(base, token, "/v1/streams/messages/records?limit=100").json()["data"]
    assert rows and all(set(row["data"]) == {"id"} for row in rows), "no more than it requests"


def details(**stream: object) -> str:
    source = {"kind": "connector", "id": "https://registry.pdpp.dev/connectors/mail"}
    streams = [{"name": "messages", "instance_ids": ["mail-work"], **stream}]
    kind = "https://pdpp.dev/data-access"
    return json.dumps([{"type": kind, "source": source, "purpose_code": "x", "streams": streams}])


def test_a_client_asks_for_streams_and_the_owner_cannot_widen_them(
    base: str, browser: Browser, client: Client
) -> None:
    path = client.path(authorization_details=details(fields=["id", "subject"]))
    page = browser.prove(path).text
    form = browser.fill(page, MAIL, '["mail-home","messages"]', decision="allow")
    form += [("field", '["mail-work","messages","body"]'), ("stream", '["mail-home","messages"]')]
    token = client.token(answer(browser.post(path, form))["code"]).json()["access_token"]
    rows = call(base, token, "/v1/streams/messages/records?limit=100").json()["data"]
    assert rows and all(set(row["data"]) <= {"id", "subject"} for row in rows)
    assert {row["connection_id"] for row in rows} == {"mail-work"}


@pytest.mark.parametrize(
    "stream",
    [
        *({"name": "secrets"}, {"fields": ["nothing"]}, {"view": "all"}, {"fields": []}),
    ],
)
def test_details_that_cannot_be_granted_are_refused(
    browser: Browser, client: Client, stream: dict[str, object]
) -> None:
    refused = browser.prove(client.path(authorization_details=details(**stream)))
    assert answer(refused)["error"] == "invalid_authorization_details"


def test_a_grant_of_the_owner_page_has_a_token_that_is_shown_once(
    base: str, house: House, browser: Browser
) -> None:
    made = browser.grant(MAIL, label="Desk")
    token = made.text.partition('<code id="token">')[2].partition("<")[0]
    assert call(base, token).status_code == 200
    page = browser.get("/owner").text
    assert "Desk" in page and token not in page
    grant_id = run_command(house, "grant", "list").split(" active 'Desk'")[0].split()[-1]
    sent = {"form": page.partition('name="form" value="')[2].partition('"')[0], "grant": grant_id}
    assert browser.post("/owner/revoke", {**sent, "form": "x"}).status_code == 403
    assert browser.post("/owner/revoke", sent).status_code == 200
    assert call(base, token).status_code == 401


def test_the_owner_sees_what_each_grant_read_by_day(
    house: House, browser: Browser, client: Client
) -> None:
    grant_id = signed_in(browser, client)["grant_id"]
    today = datetime.now(UTC).date().isoformat()
    with open_sidecar(house.path).transaction() as rows:
        for stream in ("mail-work/messages", "mail-work/threads"):
            rows(
                "INSERT INTO access_use (day, grant_id, operation, stream, count)"
                " VALUES (?, ?, 'search', ?, 2000)",
                *(today, grant_id, stream),
            )
    assert f"{today}: 4,000" in browser.get("/owner").text


def test_the_owner_sees_when_each_stream_last_changed(house: House, browser: Browser) -> None:
    def changed(stream: str) -> str:
        page = browser.get("/owner").text
        return re.findall(r">([^<]*)</td></tr>", page.partition(f"<td>{stream}</td>")[2])[0]

    before = changed("transactions")
    row = Row({"id": "b-new"}, "b-new", "2031-01-02T00:00:00Z", "messages")
    house.add("bank", row)
    assert changed("messages") == "2031-01-02" and changed("transactions") == before
    house.add("bank", row._replace(emitted_at="2031-02-03T00:00:00Z", deleted=True))
    assert changed("messages") == "2031-02-03"


def test_a_page_for_clients_has_the_address_to_sign_in_with(base: str) -> None:
    page = requests.get(f"{base}/connect").text
    assert "Or sign in" in page and "It cannot send the token" not in page


def test_errors_of_sign_in_are_counted_by_their_code(house: House) -> None:
    visitor = house.application(RUNG_SIGN_IN="on").test_client()
    assert visitor.post("/owner/login", data={"code": "x"}).status_code == 401
    assert visitor.post("/register", data="x").status_code == 400
    counted = visitor.get("/metrics").text
    for code in ("authentication_error", "invalid_client_metadata"):
        assert f'rung_errors_total{{code="{code}",surface="signin"}}' in counted
