"""What enlarges access takes a proof for its own form, which no session replaces."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.signin.clients import NAME_CHARS, own_words
from tests.helpers.signin import (
    MAIL,
    REGISTRATION,
    Browser,
    Client,
    answer,
    call,
    hidden,
    inputs,
    run_command,
)
from tests.helpers.worlds import House

GRANT, PASSKEY, REVOKE = "/owner/grant", "/owner/passkey", "/owner/revoke"
KIND = "https://pdpp.dev/data-access"
CLAIMS = [
    "✓ Verified by Rung",
    "Notebook 🔒\ufe0f",
    "Notebook\nIdentity\nclaude.ai",
    "x” Verified by Rung “",
    'x" Verified "',
    "☑\u2028\u2029 Safe \u202e\u200b",
    "➤ 𝐑𝐮𝐧𝐠 says: safe ‼ ★★★ †",
]


def passkeys(house: House) -> int:
    with Entries(open_sidecar(house.path)).reading() as kept:
        return len(kept.owned("passkey"))


@pytest.mark.parametrize(
    "wrong", [{}, {"code": ""}, {"code": "x" * 20}, {"assertion": "{}"}], ids=str
)
def test_a_session_alone_enlarges_nothing(
    house: House, browser: Browser, wrong: dict[str, str]
) -> None:
    before = run_command(house, "grant", "list"), passkeys(house)
    refused = browser.post(GRANT, browser.fill(browser.get(GRANT).text, MAIL, **wrong))
    assert refused.status_code in (401, 403) and 'id="token"' not in refused.text
    for form in ({"credential": "{}", "name": "x"}, {"remove": "00"}):
        token = hidden(browser.get("/owner").text)["form"]
        assert browser.post(PASSKEY, {"form": token, **form, **wrong}).status_code in (401, 403)
    assert (run_command(house, "grant", "list"), passkeys(house)) == before


def test_a_code_counts_for_one_form(browser: Browser) -> None:
    code = browser.code()
    made = browser.post(GRANT, browser.fill(browser.get(GRANT).text, MAIL, code=code))
    assert 'id="token"' in made.text
    again = browser.post(GRANT, browser.fill(browser.get(GRANT).text, MAIL, code=code))
    assert again.status_code == 401 and 'id="token"' not in again.text


def test_a_form_that_was_refused_after_its_proof_needs_no_other_one(browser: Browser) -> None:
    empty = browser.post(GRANT, browser.fill(browser.get(GRANT).text, code=browser.code()))
    assert empty.status_code == 400 and "You have confirmed this form" in empty.text
    proven = browser.fill(empty.text, MAIL)
    for path in (REVOKE, PASSKEY):
        assert browser.post(path, proven).status_code == 403, "it counts for this form alone"
        empty = browser.post(GRANT, browser.fill(browser.get(GRANT).text, code=browser.code()))
        proven = browser.fill(empty.text, MAIL)
    assert 'id="token"' in browser.post(GRANT, proven).text
    assert browser.post(GRANT, proven).status_code == 403, "and once"


def test_a_proof_is_refused_from_another_site(browser: Browser, client: Client) -> None:
    for headers in ({"Sec-Fetch-Site": "same-site"}, {"Origin": "http://127.0.0.1:1"}):
        form = browser.fill(browser.get(GRANT).text, MAIL, code=browser.code())
        assert browser.post(GRANT, form, **headers).status_code == 403
        refused = browser.post(client.path(), {"code": browser.code()}, **headers)
        assert refused.status_code == 403 and "mail-work" not in refused.text


def test_nothing_of_the_store_is_shown_before_the_proof(base: str, client: Client) -> None:
    page = Browser(base).get(client.path()).text
    assert "Confirm that you are the owner" in page
    for word in ("mail-work", "messages", "records</span>", "Notebook", 'name="stream"'):
        assert word not in page, word


def test_consent_leaves_no_session_behind(base: str, house: House, client: Client) -> None:
    browser = Browser(base, house.path)
    browser.allow(client.path(), MAIL)
    for path in ("/owner", GRANT, "/read?q=lantern"):
        page = browser.get(path).text
        assert "Sign out" not in page and "mail-work" not in page and 'class="hit"' not in page


def details(streams: list[dict[str, str]], **words: str) -> str:
    source = {"kind": "connector", "id": ""}
    return json.dumps([{"type": KIND, "source": source, "streams": streams, **words}])


def test_no_box_is_ticked_in_advance(base: str, browser: Browser, client: Client) -> None:
    path = client.path(authorization_details=details([{"name": "*"}]))
    page = browser.prove(path).text
    boxes = [one for one in inputs(page) if one.get("type") == "checkbox"]
    assert len(boxes) > 20 and not [one for one in boxes if "checked" in one]
    refused = browser.post(path, browser.fill(page, decision="allow"))
    assert "Nothing is selected" in refused.text
    code = answer(browser.post(path, browser.fill(refused.text, MAIL, decision="allow")))["code"]
    token = client.token(code).json()["access_token"]
    (stream,) = call(base, token, "/v1/streams").json()["data"]
    shown = {one["value"] for one in boxes if one.get("name") == "field"}
    assert stream["name"] == "messages"
    rows = call(base, token, "/v1/streams/messages/records").json()["data"]
    fields = {json.loads(value)[2] for value in shown if value.startswith(MAIL.rstrip("]"))}
    assert set().union(*(row["data"] for row in rows)) <= fields and len(fields) > 3


@pytest.mark.parametrize("words", CLAIMS)
def test_the_words_of_a_client_are_quoted_and_cannot_look_like_ours(
    base: str, house: House, words: str
) -> None:
    client = Client(base, {**REGISTRATION, "client_name": words}).register()
    asked = details([{"name": "messages"}], purpose_description=words, retention=words)
    browser = Browser(base, house.path)
    page = browser.prove(client.path(authorization_details=asked)).text
    quoted = re.findall("<q>([^<]*)</q>", page)
    assert len(quoted) == 3 and page.index("The application says") < page.index("<q>")
    assert page.count("Verified by Rung") in (0, 3), "only in quotation marks"
    for text in quoted:
        assert not re.search('[✓🔒☑➤★†\n\r"“”\u2028\u2029\u202e\u200b\ufe0f]', text), text


@given(st.text(max_size=300))
def test_own_words_are_one_line_of_letters_digits_and_punctuation(text: str) -> None:
    shown = own_words(text, NAME_CHARS)
    assert len(shown) <= NAME_CHARS and shown == shown.strip() and own_words(shown, 60) == shown
    for char in shown:
        kind = unicodedata.category(char)
        assert char == " " or kind[0] in "LMP" or kind == "Nd", (char, kind)
        assert char not in '"“”„«»\u2028\u2029' and not 0xFE00 <= ord(char) <= 0xFE0F
