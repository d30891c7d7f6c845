"""MCP over HTTP before the body is read: verbs, origins, hosts, tokens, types, sizes, headers."""

import re
from collections.abc import Iterator

import orjson
import pytest

from evidence.limits import BUDGETS
from service.access.guard import Access, Guard, origins
from tests.helpers.api import Api
from tests.helpers.fixture_app import ORIGIN, create_app
from tests.helpers.posting import Poster, error_of, legacy_body, result_of
from tests.helpers.worlds import House

FOREIGN = {"Origin": "https://evil.example"}
VERBS = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND")


@pytest.fixture
def mcp() -> Iterator[Poster]:
    """The open surface."""
    with create_app().test_client() as client:
        yield Poster(client)


@pytest.fixture
def private() -> Iterator[Poster]:
    """The surface that requires a token, such as `good`."""
    with create_app().test_client() as client:
        yield Poster(client, "/private/mcp")


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_the_slash_is_optional_and_never_redirected(mcp: Poster, path: str) -> None:
    mcp.path = path
    assert result_of(mcp.legacy("ping")) == {}


@pytest.mark.parametrize("verb", VERBS)
def test_every_other_verb_is_405_with_a_json_error(mcp: Poster, verb: str) -> None:
    response = mcp.client.open("/mcp", method=verb)
    assert response.headers["Allow"] == "POST, OPTIONS"
    assert response.status_code == 405
    if verb != "HEAD":
        assert error_of(response, 405, -32600)["id"] is None


@pytest.mark.parametrize("verb", VERBS)
def test_405_comes_before_the_token_and_asks_for_none(private: Poster, verb: str) -> None:
    response = private.client.open("/private/mcp", method=verb)
    assert response.status_code == 405
    assert "WWW-Authenticate" not in response.headers


@pytest.mark.parametrize("verb", [*VERBS, "POST", "OPTIONS"])
def test_a_foreign_origin_is_403_on_every_verb(private: Poster, verb: str) -> None:
    response = private.client.open("/private/mcp", method=verb, headers=FOREIGN)
    assert response.status_code == 403
    assert "Access-Control-Allow-Origin" not in response.headers
    if verb != "HEAD":
        error = error_of(response, 403, -32600)
        assert error["data"]["code"] == "origin_not_allowed"
        assert "RUNG_ALLOWED_ORIGINS" in error["message"]


@pytest.mark.parametrize(
    "origin",
    ["null", "http://app.example", f"{ORIGIN}:8443", f"{ORIGIN}.evil.example", f"{ORIGIN}/", ""],
)
def test_an_origin_is_compared_whole(mcp: Poster, origin: str) -> None:
    assert mcp.json(legacy_body("ping"), {"Origin": origin}).status_code == 403


@pytest.mark.parametrize("origin", [ORIGIN, "https://APP.example", "http://localhost:8000"])
def test_a_known_origin_may_read_the_answer(mcp: Poster, origin: str) -> None:
    response = mcp.json(legacy_body("ping"), {"Origin": origin})
    assert result_of(response) == {}
    assert response.headers["Access-Control-Allow-Origin"] == origin
    assert "WWW-Authenticate" in response.headers["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in response.headers


EXTENSION = "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn"
APPS = ("app://obsidian.md", "tauri://localhost", "file://", "null")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        *((origin, True) for origin in (EXTENSION, *APPS)),
        ("http://localhost:5173", True),
        ("http://localhost", True),
        ("http://[::1]:9", True),
        ("http://localhost:8000", True),  # its own
        ("https://localhost:5173", False),
        ("http://127.0.0.1:5173", False),
        ("http://localhost:5173.evil.example", False),
        ("http://localhost:", False),
        ("chrome-extension://other", False),
    ],
)
def test_origins_of_extensions_apps_and_local_ports_can_be_named(
    origin: str, allowed: bool, small_house: House
) -> None:
    listed = " ".join((EXTENSION, *APPS, "http://localhost:*/ http://[::1]:*"))
    api = Api(small_house.application(RUNG_ALLOWED_ORIGINS=listed), small_house.grant()[1])
    for answer in (
        api.post(orjson.dumps(legacy_body("ping")), Origin=origin),
        api.get("/v1/streams", Origin=origin),
    ):
        assert answer.status == (200 if allowed else 403)
        assert answer.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None)


def test_a_known_origin_may_read_a_refusal(private: Poster) -> None:
    response = private.json(legacy_body("ping"), {"Origin": ORIGIN})
    assert response.status_code == 401
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN


def test_options_is_a_preflight_that_needs_no_token(private: Poster) -> None:
    asked = {"Origin": ORIGIN, "Access-Control-Request-Headers": "x-other, Mcp-Param-Region"}
    response = private.client.options("/private/mcp", headers=asked)
    assert response.status_code == 204 and response.data == b""
    assert response.headers["Access-Control-Allow-Methods"] == "POST"
    allowed = response.headers["Access-Control-Allow-Headers"].split(", ")
    assert {"authorization", "content-type", "mcp-method", "mcp-param-region"} <= set(allowed)
    assert "x-other" not in allowed


def test_hosts_are_restricted_only_where_configured() -> None:
    hosts = frozenset({"api.example", "localhost:8000"})
    client = create_app(Guard(Access.OPEN, allowed_hosts=hosts)).test_client()
    told = {
        host: client.post("/mcp", json=legacy_body("ping"), headers={"Host": host}).status_code
        for host in (
            "api.example",
            "API.example:443",
            "localhost:8000",
            "localhost",
            "evil.example",
        )
    }
    assert list(told.values()) == [200, 200, 200, 403, 403]
    assert client.get("/mcp", headers={"Host": "evil.example"}).status_code == 405


@pytest.mark.parametrize(
    ("authorization", "error"),
    [
        (None, None),
        ("Basic Z29vZDpnb29k", "invalid_token"),
        ("Bearer", "invalid_token"),
        ("Bearer good,Bearer good", "invalid_token"),
        ("Bearer expired", "invalid_token"),
    ],
)
def test_a_missing_or_bad_token_is_401(
    private: Poster, authorization: str | None, error: str | None
) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    response = private.json(legacy_body("ping"), headers)
    assert error_of(response, 401, -32600)["data"]["code"] == "authentication_error"
    told = response.headers["WWW-Authenticate"]
    assert told == 'Bearer realm="rung"' + (f', error="{error}"' if error else "")
    assert "expired" not in response.text


def test_a_challenge_names_metadata_only_where_there_is_some() -> None:
    where = "https://api.example/.well-known/oauth-protected-resource/mcp"
    guard = Guard(Access.CLIENT_TOKEN, metadata_url=where)
    response = create_app(guard).test_client().post("/mcp", json=legacy_body("ping"))
    told = response.headers["WWW-Authenticate"]
    assert told == f'Bearer realm="rung", resource_metadata="{where}"'


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_good_token_opens_its_session(private: Poster, scheme: str) -> None:
    call = legacy_body("tools/call", {"name": "whoami"})
    result = result_of(private.json(call, {"Authorization": f"{scheme} good"}))
    assert result["content"][0]["text"] == "session=good"


def test_a_token_without_the_right_is_403(private: Poster) -> None:
    response = private.json(legacy_body("ping"), {"Authorization": "Bearer owner"})
    assert error_of(response, 403, -32600)["data"]["code"] == "permission_error"
    assert "WWW-Authenticate" not in response.headers


def test_an_authority_that_is_away_is_503(private: Poster) -> None:
    response = private.json(legacy_body("ping"), {"Authorization": "Bearer early"})
    error = error_of(response, 503, -32600)
    assert error["data"]["code"] == "upstream_unreachable" and "Try again" in error["message"]


def test_a_crash_before_the_body_is_500_with_a_fixed_text(
    private: Poster, caplog: pytest.LogCaptureFixture
) -> None:
    sent = {"Authorization": "Bearer cursed", "Request-Id": "mine"}
    response = private.json(legacy_body("ping"), sent)
    assert error_of(response, 500, -32603)["data"]["request_id"] == "mine"
    assert "secret" not in response.text
    assert "mine" in caplog.text and "cursed" not in caplog.text


def test_an_open_surface_ignores_tokens(mcp: Poster) -> None:
    call = legacy_body("tools/call", {"name": "whoami"})
    result = result_of(mcp.json(call, {"Authorization": "Bearer owner"}))
    assert result["content"][0]["text"] == "session=anonymous"


def test_the_token_is_checked_before_the_body(private: Poster) -> None:
    response = private.raw(b"not json", {"Content-Type": "text/plain"})
    assert response.status_code == 401


@pytest.mark.parametrize("found", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_other_content_types_are_415_and_say_what_to_send(mcp: Poster, found: str) -> None:
    response = mcp.raw(b"{}", {"Content-Type": found})
    assert "Content-Type: application/json" in error_of(response, 415, -32600)["message"]


def test_a_content_type_may_have_parameters(mcp: Poster) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert result_of(mcp.json(legacy_body("ping"), headers)) == {}


@pytest.mark.parametrize("over", [0, 1])
def test_a_body_may_be_as_large_as_the_limit(mcp: Poster, over: int) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'.ljust(BUDGETS.body_bytes + over)
    response = mcp.raw(body)
    assert response.status_code == (413 if over else 200)
    if over:
        assert error_of(response, 413, -32600)["data"]["limit"] == BUDGETS.body_bytes


@pytest.mark.parametrize(
    "accept",
    ["", "*/*", "application/json", "text/event-stream", "text/html", "application/json;q=0"],
)
def test_no_accept_header_is_ever_406(mcp: Poster, accept: str) -> None:
    response = mcp.json(legacy_body("ping"), {"Accept": accept})
    assert result_of(response) == {}


def test_answers_carry_the_headers_that_keep_them_private(mcp: Poster) -> None:
    response = mcp.legacy("ping")
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Vary"] == "Origin, Accept-Encoding"
    assert response.headers["Content-Length"] == str(len(response.data))


@pytest.mark.parametrize("name", ["Request-Id", "X-Request-Id"])
def test_a_well_formed_request_id_is_echoed(mcp: Poster, name: str) -> None:
    response = mcp.json(legacy_body("ping"), {name: "trace.7_A-b"})
    assert response.headers["Request-Id"] == response.headers["X-Request-Id"] == "trace.7_A-b"


@pytest.mark.parametrize("incoming", ["", "a b", "x" * 129, "<script>"])
def test_any_other_request_id_is_replaced(mcp: Poster, incoming: str) -> None:
    response = mcp.json(legacy_body("ping"), {"Request-Id": incoming})
    assert re.fullmatch(r"req_[0-9a-f]{16}", response.headers["Request-Id"])


def test_refusals_name_their_request_id(mcp: Poster) -> None:
    response = mcp.client.get("/mcp", headers={"Request-Id": "mine"})
    assert error_of(response, 405, -32600)["data"]["request_id"] == "mine"
    assert response.headers["Request-Id"] == "mine"


def test_there_is_no_session_whatever_is_sent(mcp: Poster) -> None:
    stale = {"Mcp-Session-Id": "stale", "Last-Event-ID": "7"}
    opening = legacy_body("initialize", {"protocolVersion": "2025-11-25"})
    for message in (opening, legacy_body("tools/list"), legacy_body("nonsense")):
        response = mcp.json(message, stale)
        assert response.status_code == 200
        assert "Mcp-Session-Id" not in response.headers
    assert "Mcp-Session-Id" not in mcp.client.delete("/mcp", headers=stale).headers


def test_the_well_known_paths_are_404_without_an_authorization_server(mcp: Poster) -> None:
    for path in ("/mcp", ""):
        assert mcp.client.get(f"/.well-known/oauth-protected-resource{path}").status_code == 404


def test_origins_are_spelled_one_way() -> None:
    assert origins(["https://App.Example/", " http://b:1 "]) == {
        "https://app.example",
        "http://b:1",
    }
