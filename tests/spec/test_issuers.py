"""Tokens of other authorization servers read the grant that the owner mapped, and nothing else."""

import base64
import hmac
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from flask import Flask
from joserfc import jwt
from joserfc.jwk import ECKey

from evidence.work import Deadline
from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.access.signins import Signins
from service.access.issuers import Issuers
from service.sources.remote import outbound
from service.settings import SettingsError
from tests.helpers import worlds
from tests.helpers.api import Answer, Api
from tests.helpers.asset_server import AssetServer, asset_server
from tests.helpers.signin import run_command
from tests.helpers.worlds import House

PUBLIC = "https://rung.example.com"
KEY = ECKey.generate_key("P-256", {"kid": "first"})
OTHER = ECKey.generate_key("P-256", {"kid": "second"})


@pytest.fixture(scope="module")
def issuer() -> Iterator[AssetServer]:
    with asset_server({}) as server:
        publish(server, KEY)
        yield server


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def grant_id(house: House, issuer: AssetServer) -> str:
    found = house.grant({"connection_id": "mail-work", "stream": "messages"}, label="team")[0]
    run_command(house, "grant", "map", issuer.url, "ada", "team")
    return found


@pytest.fixture
def app(house: House, issuer: AssetServer, grant_id: str) -> Flask:
    return house.application(RUNG_AUTHORIZATION_SERVERS=issuer.url, RUNG_PUBLIC_URL=PUBLIC)


def publish(server: AssetServer, *keys: ECKey) -> None:
    """Publishes the metadata and the keys of the server."""
    metadata = {"issuer": server.url, "jwks_uri": f"{server.url}/jwks"}
    server.files = {
        "/.well-known/openid-configuration": orjson.dumps(metadata),
        "/jwks": orjson.dumps({"keys": [key.as_dict(private=False) for key in keys]}),
    }


def token(
    server: AssetServer, key: Any = KEY, header: dict[str, Any] | None = None, **changes: Any
) -> str:
    """A token of the server; a claim that is None is left out."""
    claims = {"iss": server.url, "sub": "ada", "aud": f"{PUBLIC}/mcp", "exp": time.time() + 600}
    kept = {name: value for name, value in {**claims, **changes}.items() if value is not None}
    found = header or {"alg": "ES256", "kid": key.kid}
    return jwt.encode(found, kept, key, algorithms=[found["alg"]])


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def streams(app: Flask, token: str) -> Answer:
    return Api(app, token).get("/v1/streams")


def test_a_token_reads_the_grant_that_is_mapped_to_its_subject(
    app: Flask, issuer: AssetServer
) -> None:
    for audience in (PUBLIC, f"{PUBLIC}/mcp", [f"{PUBLIC}/v1", "https://other.example"]):
        answer = streams(app, token(issuer, aud=audience))
        assert answer.status == 200, answer
        assert [one["name"] for one in answer.body["data"]] == ["messages"]
    refused = Api(app, None).get("/v1/streams")
    assert "resource_metadata=" in refused.headers["WWW-Authenticate"]
    described = Api(app, None).get("/.well-known/oauth-protected-resource/mcp").body
    assert described["authorization_servers"] == [issuer.url]


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://other.example/mcp"},
        {"aud": None},
        {"aud": PUBLIC + ".evil.example"},
        {"exp": 1_000},
        {"exp": None},
        {"sub": None},
        {"iss": "https://other.example"},
        {"nbf": time.time() + 6_000},
        {"key": ECKey.generate_key("P-256", {"kid": "first"})},
        {"key": ECKey.generate_key("P-256", {"kid": "unknown"})},
    ],
)
def test_a_token_that_is_not_for_us_is_401(
    app: Flask, issuer: AssetServer, changes: dict[str, Any]
) -> None:
    answer = streams(app, token(issuer, **changes))
    assert answer.status == 401 and answer.error["code"] == "invalid_token", answer
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_a_signature_that_anybody_can_make_is_401(app: Flask, issuer: AssetServer) -> None:
    bare = token(issuer).split(".")
    head = encoded(b'{"alg":"HS256","kid":"first"}') + "." + bare[1]
    forged = f"{head}.{encoded(hmac.digest(KEY.as_pem(private=False), head.encode(), 'sha256'))}"
    none = "eyJhbGciOiJub25lIn0"
    for wrong in (
        forged,
        f"{none}.{bare[1]}.",
        f"{bare[0]}.{bare[1]}.",
        ".".join(bare[:2]),
        "x.y.z",
    ):
        assert streams(app, wrong).status == 401, wrong


def test_new_keys_of_an_issuer_are_found_and_asked_for_rarely(
    house: House, app: Flask, issuer: AssetServer, grant_id: str
) -> None:
    signins = Signins(Entries(open_sidecar(house.path)))
    now = datetime.now(UTC)
    fetch, after = outbound.fetch_json, lambda _: Deadline.after(0)
    rotating = Issuers((issuer.url,), PUBLIC, signins, lambda: now, fetch, after)
    assert rotating.grant_of(token(issuer), "/v1") == grant_id
    assert streams(app, token(issuer)).status == 200
    publish(issuer, OTHER)
    try:
        assert rotating.grant_of(token(issuer, OTHER), "/v1") == grant_id
        before = len(issuer.paths)
        assert streams(app, token(issuer, OTHER)).status == 401, "it asked a moment ago"
        assert len(issuer.paths) == before
    finally:
        publish(issuer, KEY)


def test_a_clock_that_was_set_back_revives_no_token_of_an_issuer(
    app: Flask, house: House, issuer: AssetServer, grant_id: str
) -> None:
    sidecar = open_sidecar(house.path)
    assert streams(app, token(issuer)).status == 200
    with sidecar.transaction() as rows:
        ((before,),) = rows("SELECT seen FROM access_clock")
        rows("UPDATE access_clock SET seen = ?", (rows.now + timedelta(hours=1)).isoformat())
    try:
        later = house.application(RUNG_PUBLIC_URL=PUBLIC, RUNG_AUTHORIZATION_SERVERS=issuer.url)
        assert streams(later, token(issuer)).status == 401
    finally:
        with sidecar.transaction() as rows:
            rows("UPDATE access_clock SET seen = ?", before)


def test_an_issuer_that_is_away_is_503(house: House, issuer: AssetServer, grant_id: str) -> None:
    app = house.application(RUNG_AUTHORIZATION_SERVERS=issuer.url, RUNG_PUBLIC_URL=PUBLIC)
    files, issuer.files = issuer.files, {}
    try:
        answer = streams(app, token(issuer))
        assert answer.status == 503 and answer.error["code"] == "introspection_failed"
    finally:
        issuer.files = files
    assert streams(app, token(issuer)).status == 200


def test_a_subject_without_a_grant_is_403_and_a_revoked_grant_401(
    house: House, app: Flask, issuer: AssetServer
) -> None:
    assert streams(app, token(issuer, sub="bob")).status == 403
    second = house.grant({"connection_id": "mail-home"})[0]
    run_command(house, "grant", "map", issuer.url + "/", "bob", second)
    assert streams(app, token(issuer, sub="bob")).status == 200
    run_command(house, "grant", "revoke", second)
    assert streams(app, token(issuer, sub="bob")).status == 401
    run_command(house, "grant", "map", issuer.url, "bob")
    assert streams(app, token(issuer, sub="bob")).status == 403


def test_a_server_whose_tokens_open_nothing_is_not_named(house: House) -> None:
    with pytest.raises(SettingsError, match="rung grant map https://as.example.com"):
        house.application(RUNG_AUTHORIZATION_SERVERS="https://as.example.com")
