"""The log has one line per request, with what operators need and none of the data."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlsplit

import orjson
import pytest

from service.access.tokens import PREFIX
from tests.helpers import canaries, worlds
from tests.helpers.api import Api
from tests.helpers.canaries import words_in
from tests.helpers.loopback import Asked, Reply, answering, as_json
from tests.helpers.operated import Operated, operated
from tests.spec.isolation_calls import PLAN

pytestmark = pytest.mark.slow

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
MEMBERS = {
    *("time", "level", "event", "request_id", "method", "route", "status", "bytes", "ms"),
    *("surface", "operation", "trace_id", "span_id", "client"),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    return worlds.build(canaries.world_of(PLAN), tmp_path_factory.mktemp("logged"))


@pytest.fixture(scope="module")
def server(house: worlds.House) -> Iterator[Operated]:
    with operated(house.environment) as found:
        yield found


@pytest.fixture(scope="module")
def api(house: worlds.House, server: Operated) -> Api:
    return Api(server.url, house.grant()[1])


def test_a_request_has_one_line_with_its_route_and_no_address(api: Api, server: Operated) -> None:
    target = f"/v1/streams/{canaries.NOTES}/records/nobody?connection_id={canaries.CONNECTIONS[0]}"
    answer = api.get(target, **{"Request-Id": "told-by-a-client"})
    assert (answer.status, answer.headers["Request-Id"]) == (404, "told-by-a-client")
    assert answer.error["request_id"] == "told-by-a-client"
    (line,) = server.requests("told-by-a-client")
    assert set(line) == MEMBERS | {"error", "grant"}
    assert (line["event"], line["method"], line["status"]) == ("request", "GET", 404)
    assert line["route"] == "/v1/streams/{stream}/records/{record_id}"
    assert (line["surface"], line["operation"], line["error"]) == ("rest", "fetch", "not_found")
    assert (line["client"], line["bytes"]) == ("127.0.0.1", int(answer.headers["Content-Length"]))


def test_a_call_over_mcp_names_its_tool_and_its_era(api: Api, server: Operated) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call = {**body, "params": {"name": "fetch", "arguments": {"id": "no-such-id"}}}
    assert api.post(orjson.dumps(call), **{"Request-Id": "one-tool"}).body["result"]["isError"]
    (line,) = server.requests("one-tool")
    assert (line["surface"], line["operation"], line["era"]) == ("mcp", "fetch", "legacy")
    assert line["error"] and line["status"] == 200
    unknown = {**body, "method": canaries.word("a method")}
    assert api.post(orjson.dumps(unknown), **{"Request-Id": "no-tool"}).body["error"]
    (line,) = server.requests("no-tool")
    assert (line["operation"], line["error"]) == ("other", "-32601")


def test_a_trace_comes_from_the_header_or_else_from_the_message(api: Api, server: Operated) -> None:
    meta = {"traceparent": f"00-{'c' * 32}-{PARENT}-00"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": meta}}
    api.post(orjson.dumps(call), traceparent=TRACEPARENT, **{"Request-Id": "both"})
    api.post(orjson.dumps(call), **{"Request-Id": "message"})
    api.post(orjson.dumps(call), traceparent=f"00-{'0' * 32}-x-", **{"Request-Id": "broken"})
    traces = {}
    for name in ("both", "message", "broken"):
        (line,) = server.requests(name)
        traces[name] = line["trace_id"]
        assert line["span_id"] != PARENT
    assert traces == {"both": TRACE, "message": "c" * 32, "broken": "c" * 32}


def test_no_two_workers_make_the_same_ids(house: worlds.House) -> None:
    with operated(house.environment, workers=4, threads=1) as found:
        api = Api(found.url, house.grant()[1])
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(lambda _: api.get("/v1/streams", **{"Request-Id": ""}), range(64))
            made = [answer.headers["Request-Id"] for answer in answers]
        traces = [line["trace_id"] for id in made for line in found.requests(id)]
    assert len(set(made)) == len(set(traces)) == 64


def test_health_checks_are_not_told(api: Api, server: Operated) -> None:
    assert api.get("/healthz", **{"Request-Id": "a-probe"}).status == 200
    assert api.get("/nowhere", **{"Request-Id": "no-probe"}).status == 404
    assert server.requests("no-probe") and not server.requests("a-probe")


def test_what_is_no_request_is_told_without_what_it_held(server: Operated) -> None:
    word = canaries.word("sent")
    for sent in (f"GET /{word} FTP/9\r\n\r\n", f"{word} / HTTP/1.1\r\nHost : {word}\r\n\r\n"):
        split = urlsplit(server.url)
        with socket.create_connection((split.hostname, split.port or 0)) as line:
            line.sendall(sent.encode())
            head, _, body = line.makefile("rb").read().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ") and b"application/json" in head
        error = orjson.loads(body)["error"]
        assert error["code"] == "invalid_request" and error["request_id"] in server.said()
        assert word not in server.said()


def test_no_line_has_a_token_a_text_an_id_or_a_query(
    house: worlds.House, api: Api, server: Operated
) -> None:
    """Every word of the world is a canary; it is read, searched, requested and refused here."""
    notes, first = canaries.NOTES, canaries.CONNECTIONS[0]
    seen = set[str]()
    for target in (
        "/v1/schema?view=compact",
        f"/v1/search?q={canaries.word('asked')}&streams={notes}",
        f"/v1/streams/{notes}/records?connection_id={first}&limit=5",
        f"/v1/streams/{notes}/records?filter[{canaries.word('field')}]={canaries.word('value')}",
        f"/v1/streams/{quote(canaries.word('nowhere'))}/records",
        f"/{canaries.word('path')}?{canaries.word('query')}",
    ):
        seen |= words_in(str(api.get(target).body))
    seen |= words_in(str(api.mcp("search", query=notes)))
    seen |= words_in(str(api.mcp("query_records", stream=notes, connection_id=first)))
    seen |= words_in(str(api.post(canaries.word("no json").encode()).body))
    stranger = Api(server.url, PREFIX + canaries.word("token"))
    assert stranger.get("/v1/schema").status == 401
    origin = {"Origin": f"https://{canaries.word('origin')}.example"}
    assert api.get("/v1/schema", **origin, Cookie=canaries.word("cookie")).status == 403
    assert len(seen) > 20, "nothing was read, so nothing could have leaked"
    said = server.said()
    assert not words_in(said)
    assert api.token is not None and api.token not in said and PREFIX not in said
    assert all(line["time"] and line["level"] and line["event"] for line in server.lines())


def test_an_upstream_is_asked_in_the_same_trace_until_the_last_byte(
    small_house: worlds.House, tmp_path: Path
) -> None:
    token = small_house.grant()[1]
    # One thread each: a request's line is written before the next answer.
    with operated(small_house.environment, workers=1, threads=1) as back:
        env = {"RUNG_UPSTREAM_URL": back.url, "RUNG_SECRET_KEY": worlds.SECRET}
        with operated(env, workers=1, threads=1, cwd=tmp_path) as front:
            sent = {"Request-Id": "a-blob", "traceparent": TRACEPARENT}
            blob = Api(front.url, token).get("/v1/blobs/plan?connection_id=mail-work", **sent)
            assert blob.status == 200
            metrics = Api(front.url, None).get("/metrics").body.decode()
            (line,) = front.requests("a-blob")
            assert Api(back.url, None).get("/healthz").status == 200
            there = back.requests("a-blob")
    assert line["bytes"] == len(blob.body) and line["operation"] == "blob"
    assert there and all(each["trace_id"] == TRACE for each in there)
    assert any(each["operation"] == "blob" for each in there)
    assert f'rung_upstream_outcomes_total{{outcome="2xx"}} {len(there)}' in metrics


def test_what_an_upstream_refuses_is_told_with_its_trace(tmp_path: Path) -> None:
    heard: list[Asked] = []

    def answer(asked: Asked) -> Reply:
        heard.append(asked)
        return as_json({"error": {"code": "authentication_error", "message": "No."}}, 401)

    with answering(answer) as upstream:
        env = {"RUNG_UPSTREAM_URL": upstream.url, "RUNG_STORE": str(tmp_path / "none")}
        with operated(env, workers=1) as server:
            api = Api(server.url, "a-token-of-elsewhere")
            sent = {"Request-Id": "passed-on", "traceparent": TRACEPARENT}
            assert api.get("/v1/schema", **sent).status == 401
            (line,) = server.requests("passed-on")
    (asked,) = heard
    assert asked.headers["request-id"] == "passed-on"
    assert asked.headers["traceparent"] == f"00-{TRACE}-{line['span_id']}-01"
    assert line["trace_id"] == TRACE
