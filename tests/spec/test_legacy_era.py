"""Revisions 2025-03-26 to 2025-11-25: their ladder, their handshake, batches, and a pipe."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from evidence.limits import BUDGETS
from service.mcp.protocol import Dialogue, handle_line
from service.mcp.server import Server
from service.mcp.versions import SUPPORTED
from tests.helpers.fixture_app import create_app
from tests.helpers.fixture_surface import FixtureSurface
from tests.helpers.posting import (
    ABSENT,
    LEGACY,
    Poster,
    error_of,
    legacy_body,
    modern_body,
    result_of,
)

INITIALIZED = legacy_body("notifications/initialized", id=ABSENT)


@pytest.fixture
def mcp() -> Iterator[Poster]:
    """The open surface."""
    with create_app().test_client() as client:
        yield Poster(client)


@pytest.mark.parametrize("version", [None, *LEGACY])
def test_l1_a_known_or_absent_version_is_served_without_a_handshake(
    mcp: Poster, version: str | None
) -> None:
    tools = result_of(mcp.legacy("tools/list", version=version))
    assert list(tools) == ["tools"]
    assert tools["tools"] == FixtureSurface().tools


@pytest.mark.parametrize("version", ["1.0", ""])
def test_l1_any_other_version_is_400_and_names_those_there_are(mcp: Poster, version: str) -> None:
    error = error_of(mcp.legacy("ping", version=version), 400, -32022)
    assert error["data"] == {"supported": list(SUPPORTED), "requested": version}


@pytest.mark.parametrize("version", LEGACY[:2])
def test_l2_later_revisions_have_no_batches(mcp: Poster, version: str) -> None:
    response = mcp.json([legacy_body("ping")], {"MCP-Protocol-Version": version})
    assert error_of(response, 400, -32600)["id"] is None


@pytest.mark.parametrize("answer", [{"result": {}}, {"error": {"code": 1, "message": "no"}}])
def test_l3_a_posted_response_is_accepted(mcp: Poster, answer: dict[str, Any]) -> None:
    response = mcp.json({"jsonrpc": "2.0", "id": 1, **answer})
    assert response.status_code == 202 and response.data == b""


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/anything"])
def test_l4_a_notification_is_accepted_with_nothing_in_return(mcp: Poster, method: str) -> None:
    response = mcp.json(legacy_body(method, id=ABSENT))
    assert response.status_code == 202 and response.data == b""
    assert "Content-Type" not in response.headers
    assert response.headers["Content-Length"] == "0"


@pytest.mark.parametrize(
    "message",
    [
        {},
        "ping",
        None,
        {"id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": None},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": False, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.0, "method": "ping"},
    ],
)
def test_l5_a_bad_frame_is_400(mcp: Poster, message: Any) -> None:
    error_of(mcp.json(message), 400, -32600)


@pytest.mark.parametrize("method", ["prompts/list", "server/discover", "resources/subscribe", "x"])
def test_l6_an_unknown_method_is_in_band(mcp: Poster, method: str) -> None:
    error = error_of(mcp.legacy(method), 200, -32601)
    assert error["id"] == 1 and "tools/call" in error["message"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "nothing"}),
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": "echo", "arguments": "text"}),
        ("tools/list", ["positional"]),
        ("tools/list", {"cursor": "x"}),
        ("initialize", {}),
        ("initialize", {"protocolVersion": 20250618}),
    ],
)
def test_l6_bad_parameters_are_in_band(mcp: Poster, method: str, params: Any) -> None:
    error_of(mcp.legacy(method, params), 200, -32602)


def test_a_missing_resource_is_minus_32002_with_its_uri(mcp: Poster) -> None:
    error = error_of(mcp.legacy("resources/read", {"uri": "note://2"}), 200, -32002)
    assert error["data"]["code"] == "not_found" and error["data"]["uri"] == "note://2"


def test_a_resource_is_read(mcp: Poster) -> None:
    result = result_of(mcp.legacy("resources/read", {"uri": "note://1"}))
    assert result == {"contents": [{"uri": "note://1", "mimeType": "text/plain", "text": "a note"}]}
    assert list(result_of(mcp.legacy("resources/templates/list"))) == ["resourceTemplates"]
    assert list(result_of(mcp.legacy("resources/list"))) == ["resources"]


@pytest.mark.parametrize(
    ("requested", "settled"),
    [
        *((version, version) for version in LEGACY),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ],
)
def test_initialize_settles_on_a_legacy_revision(mcp: Poster, requested: str, settled: str) -> None:
    opening = {"protocolVersion": requested, "capabilities": {}}
    assert result_of(mcp.legacy("initialize", opening, version=None)) == {
        "protocolVersion": settled,
        "capabilities": {"tools": {}, "resources": {}},
        "serverInfo": {"name": "fixture", "title": "Fixture", "version": "1.2.3"},
        "instructions": "Call echo.",
    }


@pytest.mark.parametrize("sent", ["2026-07-28", "1999-01-01", "", "2025-11-25, 2024-11-05"])
def test_initialize_negotiates_whatever_the_header_says(mcp: Poster, sent: str) -> None:
    opening = legacy_body("initialize", {"protocolVersion": "2024-11-05"})
    result = result_of(mcp.json(opening, {"MCP-Protocol-Version": sent}))
    assert result["protocolVersion"] == "2024-11-05"


@pytest.mark.parametrize("version", LEGACY)
def test_equal_copies_of_the_version_count_once(mcp: Poster, version: str) -> None:
    assert result_of(mcp.legacy("ping", version=f"{version}, {version},{version}")) == {}
    error_of(mcp.legacy("ping", version=f"{version}, 1999-01-01"), 400, -32020)
    for other in {*LEGACY} - {version}:
        error_of(mcp.legacy("ping", version=f"{version}, {other}"), 400, -32020)


def test_routing_headers_mean_nothing_here(mcp: Poster) -> None:
    response = mcp.json(legacy_body("ping"), {"Mcp-Method": "other", "Mcp-Name": "other"})
    assert result_of(response) == {}


def test_arguments_may_be_left_out(mcp: Poster) -> None:
    for arguments in ({}, {"arguments": None}):
        call = {"name": "echo", **arguments}
        assert result_of(mcp.legacy("tools/call", call))["structuredContent"] == {}


@pytest.mark.parametrize("version", [None, *LEGACY])
def test_links_become_text_only_for_clients_that_know_none(
    mcp: Poster, version: str | None
) -> None:
    result = result_of(mcp.legacy("tools/call", {"name": "link"}, version=version))
    block = result["content"][1]
    if version in LEGACY[:2]:
        assert block["type"] == "resource_link"
    else:
        assert block == {"type": "text", "text": "First note\nnote://1"}


def test_a_batch_is_answered_as_an_array(mcp: Poster) -> None:
    batch = [
        legacy_body("ping", id="a"),
        INITIALIZED,
        legacy_body("nonsense", id="b"),
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        legacy_body("initialize", {"protocolVersion": "2025-03-26"}, id="c"),
        [],
        7,
        legacy_body("tools/call", {"name": "crash"}, id="d"),
    ]
    for headers in ({}, {"MCP-Protocol-Version": "2025-03-26"}):
        response = mcp.json(batch, headers)
        assert response.status_code == 200
        told = [
            (one["id"], one.get("error", {}).get("code")) for one in orjson.loads(response.data)
        ]
        assert told == [
            ("a", None),
            ("b", -32601),
            ("c", -32600),
            (None, -32600),
            (None, -32600),
            ("d", -32603),
        ]


def test_a_batch_that_asks_nothing_gets_nothing(mcp: Poster) -> None:
    response = mcp.json([INITIALIZED, {"jsonrpc": "2.0", "id": 1, "result": {}}])
    assert response.status_code == 202 and response.data == b""


@pytest.mark.parametrize("length", [0, BUDGETS.batch_messages + 1])
def test_a_batch_is_neither_empty_nor_endless(mcp: Poster, length: int) -> None:
    error_of(mcp.json([legacy_body("ping")] * length), 400, -32600)
    assert mcp.json([legacy_body("ping")] * BUDGETS.batch_messages).status_code == 200


def test_a_pipe_serves_both_eras_at_once() -> None:
    server, dialogue = Server(FixtureSurface()), Dialogue()

    def say(message: Any) -> Any:
        answer = handle_line(server, orjson.dumps(message), None, dialogue)
        return orjson.loads(answer) if answer is not None else None

    assert say(modern_body("server/discover"))["result"]["resultType"] == "complete"
    assert say([legacy_body("ping")]) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert say(modern_body("tools/list", version="v999"))["error"]["code"] == -32022
    opened = say(legacy_body("initialize", {"protocolVersion": "2024-11-05"}))
    assert opened["result"]["protocolVersion"] == dialogue.version == "2024-11-05"
    assert say(INITIALIZED) is None
    linked = say(legacy_body("tools/call", {"name": "link"}))["result"]
    assert [block["type"] for block in linked["content"]] == ["text", "text"]
    assert say([legacy_body("ping")])["error"]["code"] == -32600
    assert say(modern_body("tools/list"))["result"]["cacheScope"] == "public"


def test_a_pipe_answers_nonsense() -> None:
    answer = handle_line(Server(FixtureSurface()), b"{nonsense", None, Dialogue())
    assert answer is not None and orjson.loads(answer)["error"]["code"] == -32700
