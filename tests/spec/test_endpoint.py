"""The product's own endpoint: what it offers, whom it refuses, which versions it supports."""

import pytest

from tests.helpers.caller import Local
from tests.spec.scenarios import scenario

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}


@scenario("002/endpoint/two-capabilities")
def test_initialising_answers_with_tools_and_resources_and_nothing_else(small: Local) -> None:
    result = small.result("initialize", INITIALIZE)
    assert result["capabilities"] == {"tools": {}, "resources": {}}
    assert "prompts" not in str(result["capabilities"])
    assert small.rpc("prompts/list")["error"]["code"] == -32601


@scenario("002/endpoint/get-is-405")
def test_get_is_405_with_the_verbs_that_work(small: Local) -> None:
    answer = small.api.get("/mcp", Accept="text/event-stream")
    assert answer.status == 405 and answer.headers["Allow"] == "POST, OPTIONS"


@scenario("002/endpoint/unknown-version-is-400")
@pytest.mark.parametrize(
    ("version", "status"), [("2024-01-01", 400), ("x", 400), ("2025-03-26", 200)]
)
def test_only_known_versions_are_taken(small: Local, version: str, status: int) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    answer = small.api.post(body, **{"MCP-Protocol-Version": version})
    assert answer.status == status


@scenario("002/endpoint/unknown-version-is-400")
def test_no_version_is_taken_as_an_old_one(small: Local) -> None:
    headers = {"Content-Type": "application/json"}
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert small.api.send("POST", "/mcp", body, headers).body["result"] == {}


@scenario("002/security/foreign-origin-is-403")
def test_a_page_of_a_foreign_origin_is_refused_on_both_surfaces(small: Local) -> None:
    foreign = {"Origin": "https://evil.example"}
    assert small.api.post(b"{}", **foreign).status == 403
    assert small.api.get("/v1/schema", **foreign).status == 403


def test_answers_are_json_and_open_no_session(small: Local) -> None:
    answer = small.api.post(
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Accept="application/json, text/event-stream"
    )
    assert answer.headers["Content-Type"] == "application/json"
    assert "Mcp-Session-Id" not in answer.headers
