"""Passkeys: how the owner adds one, signs in with it and removes it, and what is refused."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.access.owner import TRIES, TRY_SECONDS, Owner
from tests.helpers.passkeys import PRESENT, VERIFIED, Device, asked
from tests.helpers.server import serving
from tests.helpers.signin import MAIL, Browser, Client, answer as onward_answer, hidden, new_code
from tests.helpers.worlds import House
from tests.spec.sign_in.conftest import ON, WORKERS

LOGIN, OWNER, PASSKEY = "/owner/login", "/owner", "/owner/passkey"
GRANT = "/owner/grant"


@pytest.fixture(scope="module")
def named(house: House) -> Iterator[str]:
    """A server with a host name."""
    environ = {**house.environment, **ON, "RUNG_PUBLIC_URL": "http://localhost:{port}"}
    with serving("wsgi:app", environ, workers=WORKERS) as found:
        yield found.replace("127.0.0.1", "localhost")


@pytest.fixture
def owner(named: str, house: House) -> Browser:
    found = Browser(named, house.path)
    assert found.sign_in(new_code(house.path)).status_code == 200
    return found


@pytest.fixture
def device(named: str, owner: Browser) -> Iterator[Device]:
    """A device whose passkey the owner added."""
    found = Device(named)
    assert add(owner, found).status_code == 200
    yield found
    remove(owner, found)


def add(owner: Browser, device: Device, **wrong: object) -> requests.Response:
    page = owner.get(OWNER).text
    answer = device.create(asked(page, "create"), **wrong)
    form = {"form": hidden(page)["form"], "credential": answer, "name": "My <laptop>"}
    return owner.post(PASSKEY, {**form, "code": owner.code()})


def remove(owner: Browser, device: Device) -> requests.Response:
    form = {"form": hidden(owner.get(OWNER).text)["form"], "remove": device.id.hex()}
    return owner.post(PASSKEY, {**form, "code": owner.code()})


def form(browser: Browser, device: Device, **wrong: object) -> dict[str, str]:
    """The form of the sign-in page with the answer of a device."""
    page = browser.get(LOGIN).text
    token = hidden(page.partition("<form")[2])["form"]
    return {"form": token, "onward": OWNER, "assertion": device.get(asked(page, "get"), **wrong)}


def sign_in(browser: Browser, device: Device, **wrong: object) -> requests.Response:
    return browser.post(LOGIN, form(browser, device, **wrong))


@contextmanager
def passphrases_used_up(house: House) -> Iterator[None]:
    """So many passphrases were tried that no more are accepted."""
    entries = Entries(open_sidecar(house.path))
    with entries.changing() as kept:
        for _ in range(TRIES):
            kept.count("rate passphrase", "", seconds=TRY_SECONDS)
    try:
        yield
    finally:
        with entries.changing() as kept:
            kept.end("rate passphrase", "")


def is_in(browser: Browser) -> bool:
    return "Sign out" in browser.get(OWNER).text


def test_the_owner_adds_a_passkey_signs_in_and_removes_it(
    named: str, owner: Browser, device: Device
) -> None:
    page = owner.get(OWNER).text
    assert "My &lt;laptop&gt;" in page and "never used" in page
    browser = Browser(named)
    assert sign_in(browser, device).status_code == 200
    assert is_in(browser) and "last used 20" in browser.get(OWNER).text
    assert asked(page, "create")["excludeCredentials"][0]["type"] == "public-key"
    late = form(other := Browser(named), device)
    assert remove(owner, device).status_code == 200
    assert is_in(owner) and not is_in(browser), "its sessions end with a passkey"
    assert other.post(LOGIN, late).status_code == 401
    assert "data-get" not in browser.get(LOGIN).text, "without a passkey there is no button"


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://localhost"},
        {"origin": "http://sub.localhost:1"},
        {"challenge": "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg"},
        {"host": "evil.example"},
        {"flags": PRESENT},
        {"flags": VERIFIED},
        {"type": "webauthn.create"},
    ],
    ids=str,
)
def test_an_answer_for_something_else_signs_nobody_in(
    named: str, device: Device, wrong: dict[str, object]
) -> None:
    browser = Browser(named)
    assert sign_in(browser, device, **wrong).status_code == 401
    assert not is_in(browser)
    assert sign_in(browser, device).status_code == 200


@pytest.mark.parametrize(
    "wrong", [{"origin": "https://evil.example"}, {"challenge": "eHh4"}, {"flags": 65}], ids=str
)
def test_an_answer_for_something_else_adds_no_passkey(
    named: str, owner: Browser, wrong: dict[str, object]
) -> None:
    device = Device(named)
    refused = add(owner, device, **wrong)
    assert refused.status_code == 400 and "not create a usable passkey" in refused.text
    assert "data-get" not in Browser(named).get(LOGIN).text


def test_an_answer_counts_once_and_in_its_browser_only(named: str, device: Device) -> None:
    browser, other = Browser(named), Browser(named)
    sent = form(browser, device)
    other.get(LOGIN)
    assert other.post(LOGIN, sent).status_code == 403
    sent = form(browser, device)
    for foreign in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert browser.post(LOGIN, sent, **foreign).status_code == 403
    assert browser.post(LOGIN, sent).status_code == 200
    assert browser.post(LOGIN, sent).status_code == 403
    fresh = Browser(named)
    replayed = {**form(fresh, device), "assertion": sent["assertion"]}
    assert fresh.post(LOGIN, replayed).status_code == 401, "it answers another challenge"


def test_a_copy_of_a_passkey_is_noticed_by_its_count(named: str, device: Device) -> None:
    copy = Device(named, device.id, device.key)
    assert sign_in(Browser(named), device).status_code == 200
    assert sign_in(Browser(named), copy).status_code == 401
    assert sign_in(Browser(named), device).status_code == 200


def test_a_new_passphrase_ends_sessions_of_passkeys_too(
    named: str, house: House, device: Device
) -> None:
    browser = Browser(named)
    assert sign_in(browser, device).status_code == 200
    Owner(Entries(open_sidecar(house.path))).set_passphrase("correct horse battery")
    assert not is_in(browser) and sign_in(browser, device).status_code == 200


def test_another_key_does_not_pass_for_a_passkey(named: str, device: Device) -> None:
    assert sign_in(Browser(named), Device(named, device.id)).status_code == 401
    assert sign_in(Browser(named), Device(named, key=device.key)).status_code == 401


@pytest.mark.parametrize(
    "answer", ["", "null", "[]", "{}", "x", '{"rawId": "AA"}', "[" * 5_000, '{"id": "é"}']
)
def test_a_malformed_answer_is_refused(
    named: str, owner: Browser, device: Device, answer: str
) -> None:
    browser = Browser(named)
    sent = {**form(browser, device), "assertion": answer or "x"}
    assert browser.post(LOGIN, sent).status_code == 401
    page = {"form": hidden(owner.get(OWNER).text)["form"], "code": owner.code()}
    assert owner.post(PASSKEY, {**page, "credential": answer}).status_code == 400


def test_a_passkey_works_whatever_strangers_try(named: str, house: House, device: Device) -> None:
    stranger, browser = Browser(named), Browser(named)
    with passphrases_used_up(house):
        tried = stranger.sign_in("a passphrase")
        assert tried.status_code == 429 and "or a passkey" in tried.text
        assert sign_in(browser, device).status_code == 200
    for _ in range(10):
        assert sign_in(stranger, Device(named)).status_code == 401
    assert sign_in(browser, device).status_code == 200


def test_only_the_owner_changes_passkeys(named: str, owner: Browser, device: Device) -> None:
    page = owner.get(OWNER).text
    sent = {"form": hidden(page)["form"], "remove": device.id.hex(), "code": owner.code()}
    assert "Sign in as the owner" in Browser(named).post(PASSKEY, sent).text
    assert owner.post(PASSKEY, sent, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert owner.post(PASSKEY, {**sent, "form": "x"}).status_code == 403
    assert sign_in(Browser(named), device).status_code == 200


def test_a_server_without_a_name_says_what_passkeys_need(base: str, browser: Browser) -> None:
    page = browser.get(OWNER).text
    assert "Passkeys require a server with a host name" in page and "data-create" not in page
    sent = {"form": hidden(page)["form"], "credential": "{}", "code": browser.code()}
    assert browser.post(PASSKEY, sent).status_code == 403


def test_a_passkey_proves_the_owner_for_one_form(
    named: str, owner: Browser, device: Device
) -> None:
    page = owner.get(GRANT).text
    wrong = owner.fill(page, MAIL, assertion=Device(named).get(asked(page, "get")))
    assert owner.post(GRANT, wrong).status_code == 401
    page = owner.get(GRANT).text
    answer = device.get(asked(page, "get"))
    made = owner.post(GRANT, owner.fill(page, MAIL, assertion=answer))
    assert 'id="token"' in made.text
    other = owner.fill(owner.get(GRANT).text, MAIL, assertion=answer)
    assert owner.post(GRANT, other).status_code == 401, "it answers another form"

    client, browser = Client(named).register(), Browser(named)
    page = browser.get(client.path()).text
    proof = {"form": hidden(page)["form"], "assertion": device.get(asked(page, "get"))}
    assert browser.post(client.path(state="another"), proof).status_code == 403
    page = browser.get(client.path()).text
    proof = {"form": hidden(page)["form"], "assertion": device.get(asked(page, "get"))}
    assert Browser(named).post(client.path(), proof).status_code == 403, "of another browser"
    page = browser.get(client.path()).text
    proof = {"form": hidden(page)["form"], "assertion": device.get(asked(page, "get"))}
    choices = browser.post(client.path(), proof)
    assert browser.post(client.path(), proof).status_code == 403
    allowed = browser.post(client.path(), browser.fill(choices.text, MAIL, decision="allow"))
    assert client.token(onward_answer(allowed)["code"]).status_code == 200
    assert not is_in(browser)


def test_a_passkey_proves_the_owner_who_adds_and_removes_passkeys(
    named: str, owner: Browser, device: Device
) -> None:
    page, second = owner.get(OWNER).text, Device(named)
    sent = {"form": hidden(page)["form"], "credential": second.create(asked(page, "create"))}
    sent["assertion"] = device.get(asked(page, "get"))
    assert owner.post(PASSKEY, sent).status_code == 200
    assert sign_in(Browser(named), second).status_code == 200
    page = owner.get(OWNER).text
    sent = {"form": hidden(page)["form"], "remove": second.id.hex()}
    refused = owner.post(PASSKEY, {**sent, "assertion": Device(named).get(asked(page, "get"))})
    assert refused.status_code == 401 and second.id.hex() in refused.text
    page = refused.text
    sent = {"form": hidden(page)["form"], "remove": second.id.hex()}
    assert owner.post(PASSKEY, {**sent, "assertion": second.get(asked(page, "get"))}).ok
    assert sign_in(Browser(named), second).status_code == 401


def test_a_code_is_not_used_up_by_a_passkey_that_cannot_be_used(named: str, owner: Browser) -> None:
    device, code = Device(named), owner.code()
    for wrong, status in (({"origin": "https://evil.example"}, 400), ({}, 200)):
        page = owner.get(OWNER).text
        sent = {"form": hidden(page)["form"], "code": code}
        sent["credential"] = device.create(asked(page, "create"), **wrong)
        assert owner.post(PASSKEY, sent).status_code == status
    assert remove(owner, device).status_code == 200
