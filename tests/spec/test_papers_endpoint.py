"""The papers endpoint as clients see it: verbs, versions, origins, and what it offers."""

from itertools import product
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from evidence.limits import BUDGETS
from tests.helpers.api import Answer
from tests.helpers.papers import DEEP_LEARNING, Library
from tests.helpers.posting import ABSENT, JSON, LEGACY, legacy_body, modern_body, modern_headers
from tests.helpers.reading import PAPER_TOOLS
from tests.spec.scenarios import scenario

PATHS = pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/papers", "/mcp/papers/"])
SEARCH = {"name": "search_papers", "arguments": {"query": "attention"}}
READS = (
    ("initialize", {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {}}),
    ("ping", {}),
    ("tools/list", {}),
    ("tools/call", SEARCH),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": f"paper://{DEEP_LEARNING}/metadata"}),
)


def post(library: Library, message: Any, path: str = "/mcp", **headers: str) -> Answer:
    spelled = {name.replace("_", "-"): value for name, value in headers.items()}
    return library.api.send("POST", path, orjson.dumps(message), {**JSON, **spelled})


@pytest.fixture
def tools(library: Library) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = library.result("tools/list")["tools"]
    return found


@PATHS
def test_every_path_answers_a_post_without_a_redirect(library: Library, path: str) -> None:
    answer = post(library, legacy_body("tools/call", SEARCH), path)
    assert answer.status == 200 and answer.body["result"]["structuredContent"]["data"]


@pytest.mark.parametrize(("method", "params"), READS)
def test_requests_are_answered_under_their_own_id(
    library: Library, method: str, params: Any
) -> None:
    for id in (7, "seven", 0, ""):
        answer = post(library, legacy_body(method, params, id=id))
        assert answer.status == 200 and answer.body["id"] == id
        assert answer.body["jsonrpc"] == "2.0" and "result" in answer.body


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled"])
def test_a_notification_is_taken_without_a_body(library: Library, method: str) -> None:
    answer = post(library, legacy_body(method, {"requestId": 1}, id=ABSENT))
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("accept", ["text/event-stream, application/json", "text/event-stream", ""])
def test_every_answer_is_json_and_never_a_stream(library: Library, accept: str) -> None:
    for method, params in READS:
        answer = post(library, legacy_body(method, params), Accept=accept)
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.status == 200


@pytest.mark.parametrize("path", ["/mcp-sse", "/mcp-sse/", "/sse", "/messages"])
def test_there_is_no_other_transport(library: Library, path: str) -> None:
    assert library.api.get(path).status == 404


@PATHS
@scenario("002/endpoint/get-is-405")
def test_get_is_refused_at_once_with_what_is_allowed(library: Library, path: str) -> None:
    for accept in ("text/event-stream", "application/json", "*/*", ""):
        answer = library.api.get(path, Accept=accept)
        assert answer.status == 405 and answer.headers["Allow"] == "POST, OPTIONS"
        assert answer.headers["Content-Type"] == "application/json"
        assert "Mcp-Session-Id" not in answer.headers


@pytest.mark.parametrize("version", ["1999-01-01", "garbage", "2025-11-2"])
@scenario("002/endpoint/unknown-version-is-400")
def test_an_unknown_version_is_400(library: Library, version: str) -> None:
    answer = post(library, legacy_body("ping"), MCP_Protocol_Version=version)
    assert answer.status == 400 and "error" in answer.body


@pytest.mark.parametrize("version", LEGACY)
@scenario("002/endpoint/unknown-version-is-400")
def test_known_versions_are_taken_and_none_means_an_old_one(library: Library, version: str) -> None:
    assert post(library, legacy_body("ping"), MCP_Protocol_Version=version).status == 200
    assert post(library, [legacy_body("ping")]).status == 200  # only 2025-03-26 has batches


def test_the_newest_revision_answers_the_same(library: Library) -> None:
    body = modern_body("tools/call", SEARCH)
    modern = post(library, body, **modern_headers(body)).body["result"]
    legacy = post(library, legacy_body("tools/call", SEARCH)).body["result"]
    assert modern["structuredContent"] == legacy["structuredContent"]
    assert modern["content"] == legacy["content"]


def test_a_newest_resource_that_cannot_be_read_says_why(library: Library) -> None:
    body = modern_body("resources/read", {"uri": "paper://nobody/source"})
    error = post(library, body, **modern_headers(body)).body["error"]
    assert error["code"] == -32602 and error["data"]["code"] == "paper_not_found"


def test_a_call_needs_no_session_and_gets_none(library: Library) -> None:
    for headers in ({}, {"Mcp_Session_Id": "one-of-mine"}):
        answer = post(library, legacy_body("tools/call", SEARCH), **headers)
        assert answer.status == 200 and answer.body["result"]["structuredContent"]["data"]
        assert "mcp-session-id" not in {name.lower() for name in answer.headers}
    assert library.api.send("DELETE", "/mcp", b"", {"Mcp-Session-Id": "one-of-mine"}).status == 405


@scenario("002/endpoint/two-capabilities")
def test_there_are_tools_and_resources_and_nothing_else(library: Library) -> None:
    params = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {}}
    found = library.result("initialize", params)
    assert set(found["capabilities"]) == {"tools", "resources"}
    assert found["protocolVersion"] == LEGACY[0]
    assert "get_paper_source" in found["instructions"][:512]
    assert library.rpc("prompts/list")["error"]["code"] == -32601
    assert library.rpc("no/such/method")["error"]["code"] == -32601


def test_there_are_exactly_these_six_tools_in_this_order(tools: list[dict[str, Any]]) -> None:
    assert tuple(tool["name"] for tool in tools) == PAPER_TOOLS
    assert len(orjson.dumps(tools)) <= BUDGETS.tools_list_bytes


@scenario("002/endpoint/tools-explain-themselves")
def test_each_tool_says_what_it_is_for_and_what_it_takes(tools: list[dict[str, Any]]) -> None:
    assert len({tool["title"] for tool in tools}) == len(tools)
    for tool in tools:
        assert tool["title"].strip() and 80 <= len(tool["description"]) <= 500
        assert tool["annotations"]["readOnlyHint"] is True and "outputSchema" not in tool
        Draft202012Validator.check_schema(tool["inputSchema"])
        assert "additionalProperties" not in tool["inputSchema"]
        for argument in tool["inputSchema"]["properties"].values():
            assert argument["description"]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("get_paper_summary", ("First call get_paper_metadata", "available_summary_templates")),
        ("get_paper_source", ("very long", "max_chars", "outline", "query", "lang")),
        ("search_papers", ("get_paper_metadata", "get_paper_summary", "get_paper_source")),
        ("get_paper_metadata", ("before get_paper_summary",)),
    ],
)
def test_a_description_says_what_to_call_and_what_to_mind(
    tools: list[dict[str, Any]], tool: str, said: tuple[str, ...]
) -> None:
    (found,) = (each["description"] for each in tools if each["name"] == tool)
    assert all(part in found for part in said), found


FOREIGN = (
    *("null", "https://evil.example", "http://localhost.evil.example", ""),
    *("https://localhost:8000", "http://127.0.0.1:1"),
)


@PATHS
@scenario("002/security/foreign-origin-is-403")
def test_a_page_of_a_foreign_origin_is_refused(library: Library, path: str) -> None:
    for origin, verb in product(FOREIGN, ("POST", "OPTIONS", "GET")):
        body = orjson.dumps(legacy_body("ping")) if verb == "POST" else b""
        answer = library.api.send(verb, path, body, {**JSON, "Origin": origin})
        assert answer.status == 403, (origin, verb)
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_a_page_of_this_machine_may_ask(library: Library, host: str) -> None:
    origin = f"http://{host}:{str(library.api.app).rpartition(':')[2]}"
    answer = post(library, legacy_body("ping"), Origin=origin)
    assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == origin
    assert library.api.get("/papers/v1/search?q=attention", Origin=origin).status == 200


def test_a_foreign_page_may_not_use_rest_either(library: Library) -> None:
    answer = library.api.get("/papers/v1/search?q=attention", Origin="https://evil.example")
    assert answer.status == 403 and answer.error["code"] == "origin_not_allowed"
