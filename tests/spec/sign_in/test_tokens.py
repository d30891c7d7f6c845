"""A client without a token gets one that reads what the owner ticked, and is cut off."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
import requests
from click.testing import CliRunner

from service.__main__ import rung

from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.access.signins import GRACE_SECONDS, REFRESHES, USED_MOST, Signins
from service.records.opening import open_writer
from tests.helpers.server import serving
from tests.helpers.signin import (
    MAIL,
    REGISTRATION,
    Browser,
    Client,
    answer,
    call,
    hidden,
    later,
    run_command,
    signed_in,
)
from tests.helpers.worlds import House


def test_the_metadata_lead_from_a_refusal_to_the_endpoints(base: str) -> None:
    refused = requests.post(f"{base}/mcp", json={})
    assert refused.status_code == 401
    where = f"{base}/.well-known/oauth-protected-resource"
    told = refused.headers["WWW-Authenticate"]
    assert told == f'Bearer realm="rung", resource_metadata="{where}/mcp", scope="rung:read"'
    for asked, resource in (("/mcp", "/mcp"), ("/mcp/", "/mcp/"), ("/v1", "/v1"), ("", "/mcp")):
        document = requests.get(where + asked).json()
        assert document["resource"] == base + resource
        assert document["authorization_servers"] == [base]
    described = requests.get(f"{base}/.well-known/oauth-authorization-server").json()
    assert described["issuer"] == base
    assert described["code_challenge_methods_supported"] == ["S256"]
    assert described["authorization_response_iss_parameter_supported"] is True
    assert "none" in described["token_endpoint_auth_methods_supported"]


def test_without_sign_in_nothing_of_it_is_there(house: House) -> None:
    with serving("wsgi:app", house.environment) as base:
        for path in ("/authorize", "/owner", "/.well-known/oauth-authorization-server"):
            assert requests.get(base + path).status_code == 404
        assert requests.post(f"{base}/register", json=REGISTRATION).status_code == 404


def test_a_client_reads_what_was_ticked_and_is_cut_off_by_revocation(
    base: str, house: House, browser: Browser, client: Client
) -> None:
    tokens = signed_in(browser, client)
    access = tokens["access_token"]
    assert "Lantern" in call(base, access).text
    assert call(base, access, "/v1/streams/messages/records").status_code == 200
    other = call(base, access, "/v1/streams/threads/records")
    assert other.status_code == 403 and "grant_stream_not_allowed" in other.text
    assert tokens["grant_id"] in run_command(house, "grant", "list")
    assert "Notebook" in browser.get("/owner").text
    run_command(house, "grant", "revoke", tokens["grant_id"])
    ended = call(base, access)
    assert ended.status_code == 401
    assert 'error="invalid_token"' in ended.headers["WWW-Authenticate"]
    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_an_expired_token_is_refreshed_and_never_widened(
    base: str, house: House, browser: Browser, client: Client
) -> None:
    tokens = signed_in(browser, client)
    later(house, 3_601)
    assert call(base, tokens["access_token"]).status_code == 401
    for wider in ({"resource": "https://other.example/mcp"}, {"scope": "rung:read admin"}):
        assert client.refresh(tokens["refresh_token"], **wider).status_code == 400
    renewed = client.refresh(tokens["refresh_token"], scope="rung:read", resource=f"{base}/mcp")
    assert renewed.status_code == 200, renewed.text
    assert call(base, renewed.json()["access_token"]).status_code == 200
    assert (
        call(base, renewed.json()["access_token"], "/v1/streams/threads/records").status_code == 403
    )


def test_a_used_refresh_token_works_a_little_longer_and_then_ends_all(
    base: str, house: House, browser: Browser, client: Client
) -> None:
    first = signed_in(browser, client)["refresh_token"]
    second = client.refresh(first).json()
    again = client.refresh(first).json()
    assert call(base, again["access_token"]).status_code == 200
    later(house, GRACE_SECONDS + 1)
    assert client.refresh(first).json()["error"] == "invalid_grant"
    for token in (second, again):
        assert call(base, token["access_token"]).status_code == 401
        assert client.refresh(token["refresh_token"]).status_code == 400


def rows_of(house: House, grant_id: str) -> list[tuple[str, int]]:
    """(kind, number) of the codes and tokens that are kept for a grant."""
    with open_sidecar(house.path).transaction(writes=False) as rows:
        return [
            (str(kind), int(count))
            for kind, count in rows(
                "SELECT kind, count(*) FROM access_entry WHERE owner = ?"
                " AND kind IN ('access', 'code', 'refresh') GROUP BY kind ORDER BY kind",
                grant_id,
            )
        ]


def test_a_grant_is_refreshed_ten_times_a_minute(browser: Browser, client: Client) -> None:
    refresh, answers = signed_in(browser, client)["refresh_token"], []
    for _ in range(2 * REFRESHES[0] + 1):  # a new minute may begin meanwhile
        answers.append(client.refresh(refresh))
        if answers[-1].status_code == 200:
            refresh = answers[-1].json()["refresh_token"]
    statuses = [one.status_code for one in answers]
    assert statuses[: REFRESHES[0]] == [200] * REFRESHES[0] and set(statuses) == {200, 429}
    limited = next(one for one in answers if one.status_code == 429)
    assert limited.json()["error"] == "rate_limit_exceeded"
    assert 0 < int(limited.headers["Retry-After"]) <= REFRESHES[1]


def test_the_reuse_of_the_last_hundred_refresh_tokens_is_noticed(
    house: House, browser: Browser, client: Client
) -> None:
    tokens = signed_in(browser, client)
    entries = Entries(open_sidecar(house.path))
    signins, sent = Signins(entries), [tokens["refresh_token"]]
    entry = signins.refresh_token(sent[0])
    assert entry is not None
    for number in range(USED_MOST + 20):
        if number % REFRESHES[0] == 0:
            later(house, REFRESHES[1])
        with entries.changing() as kept:
            kept.end("rate refresh", "")
        sent.append(signins.rotate(sent[-1], entry.body, None)["refresh_token"])
    assert dict(rows_of(house, tokens["grant_id"]))["refresh"] <= 2 * USED_MOST
    later(house, GRACE_SECONDS + 1)
    assert client.refresh(sent[0]).json()["error"] == "invalid_grant"
    renewed = client.refresh(sent[-1]).json()
    assert renewed["refresh_token"], "an unknown token ends nothing"
    assert client.refresh(sent[-10]).json()["error"] == "invalid_grant"
    assert client.refresh(renewed["refresh_token"]).json()["error"] == "invalid_grant"


def test_tokens_that_are_never_used_do_not_pile_up(house: House) -> None:
    entries = Entries(open_sidecar(house.path))
    signins, body = Signins(entries), {"client_id": "c_1", "scope": "rung:read"}
    first = signins.exchange(signins.consented("grt_many", {}, body), body, None)["refresh_token"]
    for _ in range(2 * USED_MOST):
        with entries.changing() as kept:
            kept.end("rate refresh", "")
        last = signins.rotate(first, body, None)["refresh_token"]
    assert dict(rows_of(house, "grt_many"))["refresh"] <= USED_MOST + 2
    assert signins.refresh_token(last) and signins.refresh_token(first)


@pytest.mark.parametrize("where", ["shell", "page"])
def test_a_revocation_deletes_the_tokens_of_the_grant(
    house: House, browser: Browser, client: Client, where: str
) -> None:
    tokens = signed_in(browser, client)
    client.refresh(tokens["refresh_token"])
    grant_id = tokens["grant_id"]
    assert rows_of(house, grant_id) == [("access", 2), ("code", 1), ("refresh", 2)]
    if where == "shell":
        run_command(house, "grant", "revoke", grant_id)
    else:
        form = hidden(browser.get("/owner").text)["form"]
        browser.post("/owner/revoke", {"form": form, "grant": grant_id})
    assert rows_of(house, grant_id) == []


def test_a_client_revokes_its_own_tokens_only(base: str, browser: Browser, client: Client) -> None:
    tokens = signed_in(browser, client)
    form = {"client_id": client.id, "token": tokens["refresh_token"]}
    other = Client(base, {**REGISTRATION, "client_name": "Another"}).register()
    assert requests.post(f"{base}/revoke", {**form, "client_id": other.id}).status_code == 200
    assert call(base, tokens["access_token"]).status_code == 200
    assert requests.post(f"{base}/revoke", form).status_code == 200
    assert call(base, tokens["access_token"]).status_code == 401


def test_a_grant_that_ends_soon_gives_no_token_beyond_its_end(
    house: House, base: str, browser: Browser, client: Client
) -> None:
    tokens = signed_in(browser, client)
    soon = (datetime.now(UTC) + timedelta(seconds=1_000)).isoformat()
    with open_writer(house.path) as writer, writer.transaction():
        ending = 'UPDATE "grant" SET expires_at = ? WHERE grant_id = ? RETURNING grant_id'
        writer.run(ending, soon, tokens["grant_id"])
    renewed = client.refresh(tokens["refresh_token"]).json()
    assert 0 < int(renewed["expires_in"]) <= 1_000


def test_the_doctor_walks_to_the_sign_in(base: str) -> None:
    done = CliRunner().invoke(rung, ["doctor", base, "--json"], env={"RUNG_TOKEN": None})
    steps = {step["step"]: step for step in json.loads(done.stdout)["steps"]}
    assert steps["challenge"]["verdict"] == "ok"
    assert "each sign-in endpoint answers" in steps["challenge"]["told"]


@pytest.mark.parametrize(
    ("resource", "status"),
    [
        ("{base}/mcp?utm_source=x", 200),
        ("http://localhost:{port}/mcp", 200),
        ("http://[::1]:{port}/mcp/?a=b", 200),
        ("http://localhost:1/mcp", 400),
        ("https://localhost:{port}/mcp", 400),
        ("http://me@localhost:{port}/mcp", 400),
        ("http://rung.example.com:{port}/mcp", 400),
    ],
)
def test_other_spellings_of_the_resource_do_not_end_a_sign_in(
    base: str, house: House, client: Client, resource: str, status: int
) -> None:
    sent = resource.format(base=base, port=urlsplit(base).port)
    browser = Browser(base, house.path)
    assert browser.get(client.path(resource=sent)).status_code == status
    if status == 200:
        code = answer(browser.allow(client.path(resource=sent), MAIL))["code"]
        token = client.token(code, resource=sent).json()["access_token"]
        assert call(base, token).status_code == 200
