"""What is refused before the owner is asked for a proof, and what only after it."""

import pytest

from tests.helpers.signin import REDIRECT, Browser, Client, answer, onward


def details(streams: str) -> str:
    """`authorization_details` with this text for its streams."""
    return f'[{{"type":"https://pdpp.dev/data-access","streams":{streams}}}]'


@pytest.mark.parametrize(
    "wrong",
    [
        {"code_challenge": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge": "short"},
        {"response_type": "token"},
        {"response_type": 'to"ken\\é'},
        {"resource": "https://other.example/mcp"},
        {"client_id": "c_unknown"},
        {"client_id": None},
        {"redirect_uri": "https://evil.example/callback"},
        {"authorization_details": "[]"},
        {"authorization_details": "x"},
        {"authorization_details": '[{"type":"other","streams":[]}]'},
        {"authorization_details": details("7")},
        {"authorization_details": details('[{"name":"messages","fields":7}]')},
        {"authorization_details": details('[{"name":"messages","resources":[[]]}]')},
        {"authorization_details": details('[{"name":"messages","instance_ids":5}]')},
        {"authorization_details": details('[{"name":"messages","time_range":"x"}]')},
        {"authorization_details": details('[{"name":"messages","time_range":{"since":"x"}}]')},
    ],
)
def test_a_wrong_request_is_refused_before_the_owner_is_asked(
    base: str, browser: Browser, client: Client, wrong: dict[str, str | None]
) -> None:
    path, code = client.path(**wrong), browser.code()
    stranger = Browser(base)
    for refused in (stranger.get(path), stranger.post(path, {"code": code})):
        assert refused.status_code == 400 and "Location" not in refused.headers
        assert "This request failed" in refused.text and "http-equiv" not in refused.text
        assert "Confirm that you are the owner" not in refused.text
    assert browser.post(client.path(), {"code": code}).status_code == 200, "the code is unused"


def test_an_unknown_stream_is_reported_to_the_client_after_the_proof(
    base: str, browser: Browser, client: Client
) -> None:
    path = client.path(authorization_details=details('[{"name":"elsewhere"}]'))
    stranger = Browser(base).get(path)
    assert stranger.status_code == 200 and "Confirm that you are the owner" in stranger.text
    refused = browser.prove(path)
    assert onward(refused).startswith(REDIRECT + "?")
    back = answer(refused)
    assert back["error"] == "invalid_authorization_details" and "elsewhere" in str(back)
    assert back["state"] == "st&te" and back["iss"] == base
