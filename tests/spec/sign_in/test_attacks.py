"""What attackers try at the endpoints of sign-in, a test for each threat."""

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex

import psycopg
import pytest
import requests

from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.place import Database, Place
from service.records.postgres.ddl import OPEN
from tests.helpers.operated import operated
from tests.helpers.signin import (
    MAIL,
    REDIRECT,
    REGISTRATION,
    Browser,
    Client,
    address,
    answer,
    call,
    later,
    signed_in,
)
from tests.helpers.worlds import House
from tests.spec.sign_in.conftest import PROXIED

EVERY_TABLE = "SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = %s"


def kept_in(place: Place) -> bytes:
    """Everything that a store keeps."""
    if not isinstance(place, Database):
        return b"".join(path.read_bytes() for path in Path(place).parent.iterdir())
    with psycopg.connect(place.url) as db:
        db.execute(OPEN)
        db.execute("SET bytea_output = escape")
        tables = db.execute(f"{EVERY_TABLE}::regnamespace", ("public",)).fetchall()
        rows = (db.execute(f"SELECT t::text FROM {name} t".encode()) for (name,) in tables)
        return "".join(text for found in rows for (text,) in found).encode()


@contextmanager
def sign_ins_held(place: Place) -> Iterator[None]:
    """The tables of sign-in while somebody else changes them."""
    with ExitStack() as held:
        if isinstance(place, Database):
            db = held.enter_context(psycopg.connect(place.url))
            db.execute("LOCK TABLE access_entry IN EXCLUSIVE MODE")
        else:
            held.enter_context(Entries(open_sidecar(place)).changing())
        yield


def test_a_code_works_once_and_a_second_use_ends_what_it_gave(
    base: str, browser: Browser, client: Client
) -> None:
    back = answer(browser.allow(client.path(), MAIL))
    assert (back["iss"], back["state"]) == (base, "st&te")
    code = back["code"]
    token = client.token(code).json()["access_token"]
    assert call(base, token).status_code == 200
    assert client.token(code).json()["error"] == "invalid_grant"
    assert call(base, token).status_code == 401


def test_of_many_who_redeem_a_code_at_once_one_gets_tokens(
    base: str, browser: Browser, client: Client
) -> None:
    code = answer(browser.allow(client.path(), MAIL))["code"]
    with ThreadPoolExecutor(20) as pool:
        statuses = sorted(pool.map(lambda _: client.token(code).status_code, range(20)))
    assert statuses == [200] + [400] * 19


def test_a_code_is_bound_to_client_redirect_verifier_resource_and_time(
    base: str, house: House, browser: Browser, client: Client
) -> None:
    code = answer(browser.allow(client.path(), MAIL))["code"]
    other = Client(base, {**REGISTRATION, "client_name": "Another"}).register()
    for wrong in (
        {"client_id": other.id},
        {"redirect_uri": REDIRECT + "x"},
        {"code_verifier": "x" * 50},
        {"code_verifier": None},
        {"resource": f"{base}/papers/v1"},
        {"client_id": "c_unknown"},
    ):
        assert client.token(code, **wrong).status_code in (400, 401), wrong
    later(house, 61)
    assert client.token(code).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "code_challenge", "scope"])
def test_a_parameter_that_comes_twice_is_refused(
    browser: Browser, client: Client, name: str
) -> None:
    path = client.path(scope="rung:read")
    value = client.query(scope="rung:read")[name]
    refused = browser.prove(f"{path}&{name}={value}")
    assert refused.status_code == 400 and "Location" not in refused.headers


@pytest.mark.parametrize(
    "uri",
    [
        *("", "x", REDIRECT + "/", REDIRECT + "/../evil", REDIRECT + "%2f..", REDIRECT + "?a=b"),
        *(REDIRECT + "#x", "http://127.0.0.1:9", "http://127.0.0.1:9/", "http://[::1]/callback"),
        *("http://localhost:9/callback", "http://127.0.0.1.evil/callback", "data:text/html,x"),
        *("http://localhost.evil/callback", "//127.0.0.1/callback", "javascript:alert(1)"),
        *("http://u@127.0.0.1:9/callback", "http://127.0.0.1:9@evil/callback"),
        *("https://127.0.0.1:9/callback", "http://127.0.0.1:9\\@evil/callback"),
        *("http://127.0.0.1:99999999/callback", "HTTP://127.0.0.1:9/callback"),
        *("https://evil.example/callback", 'http://127.0.0.1:9/"callback'),
        "http://2130706433/callback",
    ],
)
def test_no_browser_is_sent_to_a_redirect_uri_that_is_not_registered(
    browser: Browser, client: Client, uri: str
) -> None:
    refused = browser.prove(client.path(redirect_uri=uri))
    assert refused.status_code == 400
    assert "Location" not in refused.headers and "http-equiv" not in refused.text


def test_on_loopback_a_redirect_uri_may_have_any_port(browser: Browser, client: Client) -> None:
    uri = REDIRECT.replace(":9/", ":54321/")
    left = browser.allow(client.path(redirect_uri=uri), MAIL)
    assert client.token(answer(left)["code"], redirect_uri=uri).status_code == 200


@pytest.mark.parametrize(
    ("uri", "status"),
    [
        ("https://app.example/callback", 201),
        ("http://localhost/callback", 201),
        ("cursor://anysphere.cursor-mcp/oauth/callback", 201),
        ("http://app.example/callback", 400),
        ("https://app.example/callback#fragment", 400),
        ("https://u:p@app.example/callback", 400),
        ("javascript:alert(1)", 400),
        ("data:text/html,x", 400),
        ("ms-word:ofe", 400),
        ("search-ms:query=x", 400),
        ("https:///callback", 400),
        (7, 400),
    ],
)
def test_which_redirect_uris_may_be_registered(base: str, uri: object, status: int) -> None:
    body = {**REGISTRATION, "redirect_uris": [uri]}
    got = requests.post(f"{base}/register", json=body, headers={"X-Forwarded-For": address()})
    assert got.status_code == status, got.text
    if status == 400:
        assert got.json()["error"] == "invalid_redirect_uri"


def test_a_client_that_names_no_method_gets_a_secret_and_needs_it(
    base: str, browser: Browser
) -> None:
    metadata = {"redirect_uris": [REDIRECT], "scope": "", "unknown": None}
    client, twin = Client(base, metadata).register(), Client(base, metadata).register()
    assert client.secret and client.secret != twin.secret
    code = answer(browser.allow(client.path(), MAIL))["code"]
    for secret in (None, twin.secret, "x"):
        assert client.token(code, client_secret=secret).json()["error"] == "invalid_client"
    basic = base64.b64encode(f"{client.id}:{client.secret}".encode()).decode()
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT}
    form["code_verifier"] = client.verifier
    got = requests.post(f"{base}/token", form, headers={"Authorization": f"Basic {basic}"})
    assert got.status_code == 200 and got.headers["Cache-Control"] == "no-store"


def test_an_unknown_client_is_told_to_register_again(base: str, client: Client) -> None:
    got = client.refresh("rung_rt_x", client_id="c_unknown")
    assert got.status_code == 401 and got.json()["error"] == "invalid_client"


@pytest.mark.parametrize("form", [{}, {"grant_type": "password"}, {"grant_type": 'é\\"'}])
def test_a_malformed_token_request_is_an_error_of_oauth(base: str, form: dict[str, str]) -> None:
    got = requests.post(f"{base}/token", form, headers={"Authorization": "Basic /////w=="})
    assert got.status_code in (400, 401) and got.json()["error"]


def test_tokens_are_taken_from_the_header_only(base: str, browser: Browser, client: Client) -> None:
    token = signed_in(browser, client)["access_token"]
    assert requests.get(f"{base}/v1/streams?access_token={token}").status_code in (400, 401)
    cookies = dict(browser.session.cookies)
    assert cookies and requests.get(f"{base}/v1/streams", cookies=cookies).status_code == 401
    session = next(iter(cookies.values()))
    assert call(base, session).status_code == 401


def test_no_token_code_or_session_is_stored_in_the_clear(
    house: House, browser: Browser, client: Client
) -> None:
    code = answer(browser.allow(client.path(), MAIL))["code"]
    tokens = client.token(code).json()
    secrets = [
        code,
        tokens["access_token"],
        tokens["refresh_token"],
        *browser.session.cookies.values(),
    ]
    kept = kept_in(house.path)
    assert b"Notebook" in kept
    assert not [secret for secret in secrets if secret.encode() in kept]


def test_a_form_is_sent_once_by_the_browser_it_was_made_for(
    base: str, house: House, browser: Browser, client: Client
) -> None:
    page = browser.prove(client.path()).text
    form = browser.fill(page, MAIL, decision="allow")
    bare = [pair for pair in form if pair[0] != "form"]
    other = Browser(base, house.path)
    other.prove(client.path())
    for sent, headers, who in (
        (form, {"Sec-Fetch-Site": "cross-site"}, browser),
        (form, {"Sec-Fetch-Site": "same-site"}, browser),
        (form, {"Origin": "https://evil.example"}, browser),
        (bare, {}, browser),
        ([*bare, ("form", "x")], {}, browser),
    ):
        assert who.post(client.path(), sent, **headers).status_code == 403, headers
    assert other.post(client.path(), form).status_code == 403
    again = browser.fill(browser.prove(client.path()).text, MAIL, decision="allow")
    assert browser.post(client.path(state="another"), again).status_code == 403
    last = browser.fill(browser.prove(client.path()).text, MAIL, decision="allow")
    assert answer(browser.post(client.path(), last))["code"]
    assert browser.post(client.path(), last).status_code == 403


def test_who_is_not_signed_in_decides_nothing(base: str, browser: Browser, client: Client) -> None:
    form = browser.fill(browser.prove(client.path()).text, MAIL, decision="allow")
    stranger = Browser(base)
    assert stranger.post(client.path(), form).status_code == 403
    proofs = ({}, {"code": ""}, {"code": token_hex(10)}, {"code": "a passphrase"})
    for sent in (*proofs, {"code": browser.code(), "decision": "allow"}):
        refused = stranger.post(client.path(), sent)
        assert refused.status_code in (401, 403) and "mail-work" not in refused.text, sent
    assert "Sign in as the owner" in stranger.get("/owner").text


def test_consent_is_asked_for_every_time(browser: Browser, client: Client) -> None:
    signed_in(browser, client)
    for page in (browser.get(client.path()), browser.post(client.path(), {})):
        assert "Confirm that you are the owner" in page.text and "http-equiv" not in page.text
    asked = browser.prove(client.path())
    assert "Allow an application" in asked.text and "http-equiv" not in asked.text


def test_refusing_goes_back_to_the_client(base: str, browser: Browser, client: Client) -> None:
    form = browser.fill(browser.prove(client.path()).text, MAIL, decision="refuse")
    back = answer(browser.post(client.path(), form))
    assert (back["error"], back["state"], back["iss"]) == ("access_denied", "st&te", base)


@pytest.mark.parametrize(
    "name", ["Claude", "\u202eedualC", "<script>alert(1)</script>", "C" * 10_000, None, 7]
)
def test_a_name_proves_nothing_and_is_shown_escaped(
    base: str, browser: Browser, name: object
) -> None:
    client = Client(base, {**REGISTRATION, "client_name": name}).register()
    page = browser.prove(client.path()).text
    assert "unverified" in page and "<script>" not in page and "\u202e" not in page
    assert "C" * 100 not in page
    assert "127.0.0.1:9" in page and "program on this computer" in page


def test_the_host_header_changes_no_document(base: str) -> None:
    for path in (
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
    ):
        headers = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
        assert requests.get(base + path, headers=headers).json() == requests.get(base + path).json()
        told = requests.get(base + path, headers={"Host": "evil.example"})
        assert "evil" not in told.text


@pytest.mark.parametrize("path", ["/token", "/register", "/revoke"])
def test_pages_of_any_origin_may_use_the_endpoints_without_cookies(base: str, path: str) -> None:
    origin = {"Origin": "https://page.example"}
    asked = requests.options(
        base + path,
        headers={**origin, "Access-Control-Request-Method": "POST"},
    )
    assert asked.status_code == 204
    allowed = asked.headers["Access-Control-Allow-Headers"]
    assert "mcp-protocol-version" in allowed and "content-type" in allowed
    got = requests.post(base + path, headers=origin)
    for response in (asked, got):
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in response.headers


def test_an_address_registers_so_often(base: str) -> None:
    here = {"X-Forwarded-For": "203.0.113.9"}
    statuses = [
        requests.post(f"{base}/register", json=REGISTRATION, headers=here).status_code
        for _ in range(21)
    ]
    assert statuses == [201] * 20 + [429]


def test_an_address_opens_the_consent_page_so_often(base: str, client: Client) -> None:
    stranger = Browser(base)
    statuses = [stranger.get(client.path()).status_code for _ in range(125)]
    assert set(statuses) == {200, 429} and statuses[:60] == [200] * 60


def test_an_address_that_guesses_codes_has_to_wait_and_can_still_refresh(
    base: str, browser: Browser, client: Client
) -> None:
    tokens = signed_in(browser, client)
    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda _: client.token("rung_code_x").status_code, range(245)))
    assert set(statuses) == {400, 429}
    assert client.refresh(tokens["refresh_token"]).status_code == 200


def test_no_log_line_has_a_token_a_code_or_a_session(house: House) -> None:
    with operated({**house.environment, **PROXIED, "RUNG_SIGN_IN": "on"}) as server:
        browser, client = Browser(server.url, house.path), Client(server.url)
        code = browser.code()
        browser.get(f"/owner/login?code={code}")
        browser.sign_in(code)
        given = answer(browser.allow(client.register().path(), MAIL))["code"]
        tokens = client.token(given).json()
        client.refresh(tokens["refresh_token"])
        client.token(given)
        call(server.url, tokens["access_token"])
        said = server.said()
    secrets = [code, given, tokens["access_token"], tokens["refresh_token"], client.id]
    assert "/token" in said and "invalid_token" in said
    assert not [one for one in [*secrets, *browser.session.cookies.values()] if one in said]


def test_a_store_that_is_busy_is_no_reason_to_drop_tokens(
    base: str, house: House, browser: Browser, client: Client
) -> None:
    tokens = signed_in(browser, client)
    with ThreadPoolExecutor(1) as pool, sign_ins_held(house.path):
        waiting = pool.submit(client.refresh, tokens["refresh_token"])
        assert call(base, tokens["access_token"]).status_code == 200
        got = waiting.result()
    assert got.status_code == 503 and int(got.headers["Retry-After"]) > 0
    assert got.json()["error"] == "store_unavailable"
    assert client.refresh(tokens["refresh_token"]).status_code == 200
