"""Revision 2026-07-28: every rung of its ladder in order, and the shape of its answers."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from service.mcp.versions import SUPPORTED
from tests.helpers.fixture_app import create_app
from tests.helpers.posting import (
    ABSENT,
    MODERN,
    PREFIX,
    Poster,
    error_of,
    legacy_body,
    modern_body,
    modern_headers,
    present,
    result_of,
)

ECHO = {"name": "echo", "arguments": {"text": "hi"}}
SERVER_INFO = {"name": "fixture", "title": "Fixture", "version": "1.2.3"}


@pytest.fixture
def mcp() -> Iterator[Poster]:
    """The open surface."""
    with create_app().test_client() as client:
        yield Poster(client)


def wrapped(text: str) -> str:
    """A header value in its base64 wrapping."""
    return f"=?base64?{b64encode(text.encode()).decode()}?="


@pytest.mark.parametrize(
    "message",
    [
        [],
        [modern_body("tools/list")],
        5,
        {"jsonrpc": "1.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
def test_m1_the_body_is_one_request(mcp: Poster, message: Any) -> None:
    error_of(mcp.json(message, {"MCP-Protocol-Version": MODERN}), 400, -32600)


def test_m2_a_notification_is_accepted_with_nothing_in_return(mcp: Poster) -> None:
    body = modern_body("notifications/cancelled", id=ABSENT)
    for headers in ({}, modern_headers(body)):
        response = mcp.json(body, headers)
        assert response.status_code == 202 and response.data == b""
        assert "Content-Type" not in response.headers


def test_m2_a_notification_of_an_unknown_revision_is_refused(mcp: Poster) -> None:
    body = modern_body("notifications/cancelled", id=ABSENT)
    error_of(mcp.json(body, {"MCP-Protocol-Version": "2099-01-01"}), 400, -32022)


@pytest.mark.parametrize("id", [None, True, 1.5, [], {}, 2**70])
def test_m3_an_id_is_text_or_an_integer(mcp: Poster, id: Any) -> None:
    body = modern_body("tools/list")
    raw = b'{"jsonrpc":"2.0","id":1180591620717411303424,"method":"tools/list"}'
    headers = modern_headers(body)
    response = mcp.raw(raw, headers) if id == 2**70 else mcp.json({**body, "id": id}, headers)
    assert error_of(response, 400, -32600)["id"] is None


@pytest.mark.parametrize(
    "meta",
    [
        ABSENT,
        None,
        [],
        {},
        {f"{PREFIX}protocolVersion": MODERN},
        {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": []},
        {f"{PREFIX}protocolVersion": 7, f"{PREFIX}clientCapabilities": {}},
        {f"{PREFIX}clientCapabilities": {}},
    ],
)
def test_m4_a_request_carries_its_claims_before_headers_count(mcp: Poster, meta: Any) -> None:
    body = legacy_body("tools/list", present({"_meta": meta}))
    error = error_of(mcp.json(body, {"MCP-Protocol-Version": MODERN}), 400, -32602)
    assert error["id"] == 1 and "clientCapabilities" in error["message"]


@pytest.mark.parametrize("header", [ABSENT, "2025-11-25", "2099-01-01", f"{MODERN},2025-11-25", ""])
def test_m5_the_version_header_agrees_with_the_body(mcp: Poster, header: Any) -> None:
    error_of(mcp.modern("tools/list", MCP_Protocol_Version=header), 400, -32020)


def test_m5_comes_before_m6(mcp: Poster) -> None:
    body = modern_body("tools/list", version="v999")
    error_of(mcp.json(body, modern_headers(body)), 400, -32020)
    agreed = modern_headers(body, MCP_Protocol_Version="v999", Mcp_Method=ABSENT)
    error = error_of(mcp.json(body, agreed), 400, -32022)
    assert error["data"] == {"supported": list(SUPPORTED), "requested": "v999"}


@pytest.mark.parametrize("header", [ABSENT, "tools/call", "TOOLS/LIST", "tools/list,tools/list"])
def test_m7_the_method_header_agrees_with_the_body(mcp: Poster, header: Any) -> None:
    error_of(mcp.modern("tools/list", Mcp_Method=header), 400, -32020)


@pytest.mark.parametrize(
    "header",
    [ABSENT, "Echo", "echo,echo", "=?base64?ZWNobw?=", "=?base64?Z*Nobw==?=", "=?base64?/w==?="],
)
def test_m8_the_name_header_agrees_with_the_body(mcp: Poster, header: Any) -> None:
    error_of(mcp.modern("tools/call", ECHO, Mcp_Name=header), 400, -32020)


def test_m8_a_name_may_come_wrapped_as_base64(mcp: Poster) -> None:
    assert result_of(mcp.modern("tools/call", ECHO, Mcp_Name=wrapped("echo")))
    read = mcp.modern("resources/read", {"uri": "note://ü"}, Mcp_Name=wrapped("note://ü"))
    assert result_of(read)["contents"][0]["uri"] == "note://ü"


@pytest.mark.parametrize(
    ("arguments", "headers", "agrees"),
    [
        ({}, {}, True),
        ({"region": "eu"}, {"Region": "eu"}, True),
        ({"region": "ü"}, {"Region": wrapped("ü")}, True),
        ({"page": {"size": 5}}, {"Size": "5.0"}, True),
        ({"exact": True}, {"Exact": "true"}, True),
        ({"region": None}, {}, True),
        ({"region": "eu"}, {}, False),
        ({"region": "eu"}, {"Region": "us"}, False),
        ({}, {"Region": "eu"}, False),
        ({"page": {"size": 5}}, {"Size": "five"}, False),
        ({"exact": True}, {"Exact": "1"}, False),
        ({"page": 5}, {"Size": "5"}, False),
    ],
)
def test_m9_mirrored_arguments_agree_with_their_headers(
    mcp: Poster, arguments: dict[str, Any], headers: dict[str, str], agrees: bool
) -> None:
    sent = {f"Mcp_Param_{name}": value for name, value in headers.items()}
    response = mcp.modern("tools/call", {"name": "mirrored", "arguments": arguments}, **sent)
    if agrees:
        assert result_of(response)["structuredContent"] == arguments
    else:
        error_of(response, 400, -32020)


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "prompts/list", "logging/setLevel", "subscriptions/listen", "x" * 900],
)
def test_m10_an_unknown_method_is_404(mcp: Poster, method: str) -> None:
    error = error_of(mcp.modern(method, {"protocolVersion": "2025-11-25"}), 404, -32601)
    assert error["id"] == 1 and "server/discover" in error["message"]
    assert len(error["message"]) < 400


def test_m11_a_missing_client_capability_is_named(mcp: Poster) -> None:
    error = error_of(mcp.modern("tools/call", {"name": "sample"}), 400, -32021)
    assert error["data"] == {"requiredCapabilities": {"sampling": {}}}
    body = modern_body("tools/call", {"name": "sample"})
    body["params"]["_meta"][f"{PREFIX}clientCapabilities"] = {"sampling": {}}
    assert result_of(mcp.json(body, modern_headers(body)))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "nothing"}),
        ("tools/call", {"arguments": {}}),
        ("tools/call", {"name": "echo", "arguments": [1]}),
        ("resources/read", {}),
        ("resources/read", {"uri": "note://2"}),
        ("tools/list", {"cursor": "x"}),
        ("resources/list", {"cursor": ""}),
        ("resources/templates/list", {"cursor": 5}),
    ],
)
def test_m12_what_is_wrong_inside_a_method_is_in_band(
    mcp: Poster, method: str, params: Any
) -> None:
    error_of(mcp.modern(method, params), 200, -32602)


def test_an_unknown_tool_is_answered_with_those_there_are(mcp: Poster) -> None:
    error = error_of(mcp.modern("tools/call", {"name": "ecoh"}), 200, -32602)
    assert "ecoh" in error["message"] and "echo" in error["message"]
    assert error["data"]["tools"][0] == "echo"


def test_a_missing_resource_is_minus_32602_with_its_uri(mcp: Poster) -> None:
    error = error_of(mcp.modern("resources/read", {"uri": "note://2"}), 200, -32602)
    assert error["data"]["code"] == "not_found" and error["data"]["uri"] == "note://2"
    assert error["data"]["hint"] == "Read note://1."


def test_a_crash_is_minus_32603_with_a_fixed_text(
    mcp: Poster, caplog: pytest.LogCaptureFixture
) -> None:
    response = mcp.modern("tools/call", {"name": "crash"}, Request_Id="mine")
    error = error_of(response, 200, -32603)
    assert error["data"]["request_id"] == "mine"
    assert "secret" not in response.text
    assert "mine" in caplog.text and "the secret cause" in caplog.text


def test_a_failed_tool_is_a_result(mcp: Poster) -> None:
    result = result_of(mcp.modern("tools/call", {"name": "fail"}))
    assert result["isError"] is True and result["resultType"] == "complete"


def test_discovery_says_what_there_is_and_no_more(mcp: Poster) -> None:
    result = result_of(mcp.modern("server/discover"))
    assert result["supportedVersions"] == list(SUPPORTED)
    assert result["capabilities"] == {"tools": {}, "resources": {}}
    assert result["instructions"] == "Call echo."
    assert "serverInfo" not in result


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("server/discover", {}),
        ("tools/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "note://1"}),
    ],
)
@pytest.mark.parametrize(("path", "scope"), [("/mcp", "public"), ("/private/mcp", "private")])
def test_what_can_be_kept_says_for_how_long_and_by_whom(
    mcp: Poster, method: str, params: Any, path: str, scope: str
) -> None:
    mcp.path = path
    result = result_of(mcp.modern(method, params, Authorization="Bearer good"))
    assert result["cacheScope"] == scope
    assert isinstance(result["ttlMs"], int) and result["ttlMs"] >= 0
    assert result["resultType"] == "complete"
    assert result["_meta"][f"{PREFIX}serverInfo"] == SERVER_INFO


def test_a_call_is_never_kept_and_keeps_its_own_meta(mcp: Poster) -> None:
    result = result_of(mcp.modern("tools/call", {"name": "link"}))
    assert "ttlMs" not in result and "cacheScope" not in result
    assert result["_meta"] == {"test/hidden": 1, f"{PREFIX}serverInfo": SERVER_INFO}
    assert result["content"][1]["type"] == "resource_link"


def test_a_body_that_names_a_legacy_revision_is_served_at_it(mcp: Poster) -> None:
    body = modern_body("ping", version="2025-06-18")
    assert result_of(mcp.json(body)) == {}
    assert result_of(mcp.json(body, {"MCP-Protocol-Version": "2025-06-18"})) == {}
    error_of(mcp.json(body, {"MCP-Protocol-Version": "2025-11-25"}), 400, -32020)
