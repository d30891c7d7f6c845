"""Bad input: the same code on both surfaces, a message with what to do, and never a 5xx.

REST clamps the limits of records, search and field windows instead, as PDPP does.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from evidence import handles
from evidence.limits import BUDGETS
from tests.helpers import worlds
from tests.helpers.api import Api, record_path, route_of
from tests.helpers.posting import legacy_body
from tests.helpers.server import serving
from tests.spec.bad_calls import CASES, FIELD, ID, MAIL, RECORD, STATUS, Bad

TYPES = {
    400: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
}
OURS = re.compile(r"Traceback|sqlite|\.py\b|marshmallow|SELECT |rung\.db", re.IGNORECASE)
ROUTES = (
    "/v1/schema",
    "/v1/connectors",
    "/v1/streams",
    "/v1/streams/messages",
    "/v1/streams/messages/records",
    "/v1/streams/messages/aggregate?metric=count",
    "/v1/search?q=lantern",
    RECORD,
    f"{RECORD}/field-window?field=body",
    "/v1/blobs/text-work",
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("bad"))


@pytest.fixture(scope="module")
def api(house: worlds.House) -> Api:
    return house.api()


@pytest.fixture(scope="module")
def remote(house: worlds.House) -> Iterator[Api]:
    """The same store behind a real gunicorn."""
    with serving("service.app:create_app()", house.environment) as base:
        yield Api(base, house.grant()[1])


def refused(result: dict[str, Any]) -> dict[str, Any]:
    """The error of a tool result, which must be the same in both channels."""
    assert result["isError"] is True
    error: dict[str, Any] = result["structuredContent"]["error"]
    (block,) = result["content"]
    assert f"code={error['code']}" in block["text"]
    assert error["message"] in block["text"]
    return error


def teaches(error: dict[str, Any], says: str) -> None:
    """Fails unless the error says what is wrong and what to do, and leaks no internals."""
    told = json.dumps(error)
    assert re.search(says, told), told
    assert not OURS.search(told), told
    assert len(error["message"] + error.get("hint", "")) > 20


@pytest.mark.parametrize("bad", CASES.values(), ids=CASES.keys())
def test_a_bad_call_is_told_the_same_over_mcp_and_rest(api: Api, bad: Bad) -> None:
    error = refused(api.mcp(bad.tool, **bad.args))
    assert error["code"] == bad.code, error
    teaches(error, bad.says)
    if bad.rest == "":
        return
    if bad.rest is not None:
        answer = api.get(bad.rest)
    else:
        where, params = route_of(bad.tool, bad.args)
        answer = api.rest(where, **params)
    if bad.clamped is not None:
        assert answer.status == 200, answer.body
        (warning,) = [w for w in answer.body["meta"]["warnings"] if w["code"] == "limit_clamped"]
        assert warning["detail"]["requested_limit"] == bad.args[bad.clamped]
        return
    assert (answer.status, answer.error["code"]) == (STATUS[bad.code], bad.code), answer.body
    assert answer.error["type"] == TYPES.get(answer.status, "api_error")
    assert answer.error["request_id"] == answer.headers["Request-Id"]
    teaches(answer.error, bad.says)


@pytest.mark.parametrize("name", ["records: typo", "id traversal", "window too large", "zone .."])
def test_a_real_server_tells_the_same(api: Api, remote: Api, name: str) -> None:
    bad = CASES[name]
    assert remote.mcp(bad.tool, **bad.args) == api.mcp(bad.tool, **bad.args)
    where, params = route_of(bad.tool, bad.args)
    assert remote.rest(where, **params).body == api.rest(where, **params).body


@pytest.mark.parametrize(
    "query", ["AND", "NEAR(", "col:", "a OR b", '"lantern', "body:lantern", "x" * 500, "*lantern"]
)
def test_search_has_no_syntax_that_could_be_wrong(api: Api, query: str) -> None:
    assert "isError" not in api.mcp("search", query=query)
    assert api.rest("/v1/search", q=query).status == 200


@pytest.mark.parametrize(
    "query",
    [
        " ".join(chr(0x4E00 + n) for n in range(250)),
        "".join(chr(0x4E00 + n) for n in range(500)),
        "* ".join("abcdefghijklmnopqrstuvwxyz") + "*",
        " ".join(f"-{chr(0x4E00 + n)}" for n in range(160)) + " lantern",
    ],
    ids=["250 words", "one phrase of 500", "26 prefixes", "160 exclusions"],
)
def test_the_longest_queries_are_answered(api: Api, query: str) -> None:
    assert "isError" not in api.mcp("search", query=query)
    window = {**FIELD, "query": query.removesuffix("lantern")}
    assert refused(api.mcp("read_record_field", **window))["code"] == "query_not_found"


def test_whole_numbers_may_be_written_with_a_point(api: Api) -> None:
    body = json.dumps(legacy_body("tools/call", {"name": "query_records", "arguments": {}}))
    sent = body.replace('"arguments": {}', '"arguments": {"stream": "messages", "limit": 5.0}')
    result = api.post(sent.encode()).body["result"]
    assert len(result["structuredContent"]["data"]["data"]) == 5


def test_null_is_as_good_as_absent(api: Api) -> None:
    absent = api.mcp("query_records", **MAIL)
    assert api.mcp("query_records", **MAIL, limit=None, filter=None, cursor=None) == absent


@pytest.mark.parametrize("offset", [17, 10**9, 2**53 - 1])
def test_a_window_past_the_end_is_empty_and_says_where_the_end_is(api: Api, offset: int) -> None:
    args = {"id": ID, "field_path": "subject", "offset_chars": offset}
    raw = json.dumps(legacy_body("tools/call", {"name": "read_record_field", "arguments": args}))
    window = api.post(raw.encode()).body["result"]["structuredContent"]["window"]
    total = len("Lantern 1 at work")
    assert (window["text"], window["start_chars"], window["total_chars"]) == ("", total, total)


@pytest.mark.parametrize("number", ["1e400", "NaN", "-Infinity", "1" + "0" * 5_000])
@pytest.mark.parametrize("name", ["limit", "match", "offset_chars"])
def test_numbers_that_are_none_are_refused_by_name_or_as_json(
    api: Api, number: str, name: str
) -> None:
    tool = "query_records" if name == "limit" else "read_record_field"
    args = MAIL if name == "limit" else {**FIELD, "query": "lantern"}
    body = json.dumps(legacy_body("tools/call", {"name": tool, "arguments": {**args, name: "§"}}))
    answer = api.post(body.replace('"\\u00a7"', number).encode())
    if answer.status == 200:
        assert refused(answer.body["result"])["code"] in ("invalid_request", "invalid_window")
    else:
        assert (answer.status, answer.body["error"]["code"]) == (400, -32700)


BAD_WINDOWS: tuple[dict[str, Any], ...] = (
    {"offset_chars": -5},
    {"offset_chars": "far"},
    {"limit_chars": 10**9},
    {"limit_chars": []},
    {"q": 5},
    {"q": "x" * 501},
    {"q": "lantern", "match": 0},
    {"match": 2},
)


@pytest.mark.parametrize("window", BAD_WINDOWS, ids=[json.dumps(w)[:30] for w in BAD_WINDOWS])
def test_a_uri_cannot_carry_a_window_that_no_argument_could(
    api: Api, window: dict[str, Any]
) -> None:
    uri = handles.field_window_uri(handles.parse(ID), "body", **window)
    assert refused(api.mcp("read_record_field", id=uri))["code"] in (
        "invalid_request",
        "invalid_window",
    )
    error = api.read(uri)["error"]
    assert error["code"] == -32002 and error["data"]["uri"] == uri
    teaches(error["data"], "offset_chars|limit_chars|query|match")


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "file:///etc/passwd",
        "pdpp://record/../../etc/passwd",
        "pdpp://record/%00",
        "pdpp://record/mail-work%2Fmessages%3Anope",
        "pdpp://field-window/e30",
        "pdpp://field-window/mail-work%2Fmessages%3Am1",
        "pdpp://stream/",
        "pdpp://stream/nope",
        "pdpp://stream/messages?connection_id=nope",
        "pdpp://stream/%FF",
    ],
)
def test_a_bad_uri_is_refused_with_its_code_and_itself(api: Api, uri: str) -> None:
    error = api.read(uri)["error"]
    assert error["code"] == -32002
    assert error["data"]["uri"] == uri and error["data"]["code"] in STATUS
    teaches(
        {**error["data"], "message": error["message"]}, "[Ss]earch|returned|schema|field_path|name"
    )


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/v1/schema?nope=1", 400),
        ("/v1/connectors?nope=1", 400),
        ("/v1/streams?nope=1", 400),
        ("/v1/streams/messages?nope=1", 400),
        ("/v1/blobs/text-work?nope=1", 400),
        (f"{RECORD}?id=x", 400),
        ("/v1/streams/messages/records?stream=threads", 400),
        (f"{RECORD}/field-window?field=body&cursor=x", 400),
        (f"{RECORD}/field-window?field=body&cursor={'9' * 5_000}", 400),
        (f"{RECORD}/field-window?field=body&cursor=1&offset_chars=2", 400),
        ("/v1/search?q=x&filter=a&filter[b]=c", 400),
        (f"{RECORD}?expand_limit=5&expand_limit[attachments]=1", 400),
        ("/v1/search?q=x&limit[]=5", 400),
        ("/v1/search?q[a]=x", 400),
        ("/v1/search?" + "&".join(f"streams=s{n}" for n in range(300)), 400),
        ("/v1/search?[=x", 400),
        ("/v1/search?q=%FF%FE&limit=%ED%A0%80", 400),
        ("/v1/search?q=lantern&connection_id=mail-work&connector_instance_id=bank", 400),
        ("/v1/streams?connection_id=mail-work&connector_instance_id=bank", 400),
        ("/v1/streams?connector_instance_id=nope", 404),
        ("/v1/streams/messages?connector_id=nope", 404),
        ("/v1/streams/messages/records?order=up", 400),
        ("/v1/streams/messages/records?window=wide", 400),
        ("/v1/streams/messages/records?sort=-received_at&order=asc&connection_id=mail-work", 400),
        ("/v1/streams/%00/records", 400),
        ("/v1/streams/%ED%A0%80/records", 403),
        ("/v1/streams/..%2F..%2Fetc/records", 403),
        ("/v1/streams//records", 404),
        ("/v1/nothing", 404),
        ("/v1/blobs/..%2F..%2Fetc%2Fpasswd", 404),
        ("/v1/blobs/%00", 404),
    ],
)
def test_a_bad_address_is_refused_in_the_same_body(api: Api, target: str, status: int) -> None:
    answer = api.get(target)
    assert answer.status == status, answer.body
    teaches(answer.error, ".")


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE", "PATCH"])
def test_rest_is_read_only(api: Api, verb: str) -> None:
    answer = api.send(verb, RECORD, b"{}", {"Content-Type": "application/json"})
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize(
    ("asked", "status"),
    [("0-3", 206), ("-5", 206), ("9-", 206), ("5-3", 416), ("9999-", 416), ("-0", 416)]
    + [(f"{'9' * 5_000}-", 200), (f"-{'9' * 5_000}", 200), ("x-y", 200), ("-", 200), ("٣-٤", 200)],
)
def test_a_bad_range_is_ignored_or_unsatisfiable(api: Api, asked: str, status: int) -> None:
    spelled = f"bytes={asked}".encode().decode("latin-1")
    answer = api.get("/v1/blobs/pdf-work", Range=spelled)
    assert answer.status == status
    assert status != 206 or len(answer.body) < len(worlds.BINARY)


def test_a_parameter_given_twice_never_widens_an_answer(api: Api) -> None:
    narrow = "/v1/streams/messages/records?filter[folder]=inbox&filter[folder]=sent&count=exact"
    assert api.get(f"{narrow}&connection_id=mail-work").body["meta"]["count"]["value"] == 2


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b" " * (BUDGETS.body_bytes + 1), 413, -32600),
        (b'{"x":' * 10_000 + b"1" + b"}" * 10_000, 400, -32700),
        (b"[" * 10_000, 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\udc00"}}', 400, -32700),
    ],
    ids=["too large", "10,000 deep", "10,000 open", "NaN", "a lone surrogate"],
)
def test_a_bad_body_is_refused_before_any_tool_runs(
    api: Api, remote: Api, body: bytes, status: int, code: int
) -> None:
    for one in (api, remote):
        answer = one.post(body)
        assert (answer.status, answer.body["error"]["code"]) == (status, code)


def test_ten_megabytes_are_refused(api: Api) -> None:
    answer = api.post(b'{"a":"' + b"x" * 10_000_000 + b'"}')
    assert answer.status == 413
    assert answer.body["error"]["data"]["code"] == "request_too_large"


def test_a_surrogate_in_an_address_is_no_character(api: Api) -> None:
    assert api.get(record_path("messages", "m1").replace("m1", "%ED%A0%80")).status == 404


def test_unknown_tools_are_named_with_the_known_ones(api: Api) -> None:
    error = api.rpc("tools/call", {"name": "serch", "arguments": {}})["error"]
    assert error["code"] == -32602 and "search" in error["message"]
