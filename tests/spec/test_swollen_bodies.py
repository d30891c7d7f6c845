"""JSON that is small on the wire and large in memory: what a source may send is bounded."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest

from evidence.limits import BUDGETS
from tests.helpers.api import Answer, Api
from tests.helpers.loopback import Asked, Loopback, Reply, answering, as_json
from tests.helpers.memory import Watch
from tests.helpers.operated import Operated, operated
from tests.helpers.posting import JSON
from tests.helpers.worlds import SECRET

MB = 1_048_576
GROWTH_BYTES = 50 * MB
NEIGHBOUR_SECONDS = 2.0
LIMIT = 3
STREAM = "/v1/streams/notes"
SCHEMA = {
    "bearer": {"token_kind": "client"},
    "connectors": [
        {
            "connector_key": "list",
            "granted_connections": [{"connection_id": "c"}],
            "streams": [{"name": "notes", "primary_key": ["id"]}],
        }
    ],
}


def filled(head: bytes, value: bytes, tail: bytes) -> bytes:
    """As many values as fit into the largest body of an upstream."""
    room = BUDGETS.upstream_bytes - len(head) - len(tail)
    return head + b",".join([value] * (room // (len(value) + 1))) + tail


def row(data: dict[str, Any], key: str = "n") -> dict[str, Any]:
    return {"object": "record", "id": key, "stream": "notes", "connection_id": "c", "data": data}


#: The answer to each tool's request; `@` is replaced by a value.
DEEP: dict[str, dict[str, Any]] = {
    "query_records": {"data": [row({"a": "@"})], "has_more": False},
    "aggregate": {"groups": [{"key": "k", "count": 1}], "odd": "@"},
    "search": {"data": [{"record_key": "n", "stream": "notes", "title": "t", "odd": "@"}]},
    "fetch": row({"a": "@"}),
    "read_record_field": {"window": {"text": "x", "start_chars": 0}, "odd": "@"},
}
CALLS: dict[str, dict[str, Any]] = {
    "query_records": {"stream": "notes"},
    "aggregate": {"stream": "notes", "metric": "count"},
    "search": {"query": "word"},
    "fetch": {"id": "c/notes:n"},
    "read_record_field": {"id": "c/notes:n", "field_path": "/a"},
}
TARGETS = {
    "query_records": f"{STREAM}/records",
    "aggregate": f"{STREAM}/aggregate?metric=count",
    "search": "/v1/search?q=word",
    "fetch": f"{STREAM}/records/n?connection_id=c",
    "read_record_field": f"{STREAM}/records/n/field-window?connection_id=c&field=a",
}
#: Bodies of 16 MB with millions of values.
SWOLLEN: dict[str, bytes] = {
    "objects": filled(b'{"data":[', b'{"a":1}', b"]}"),
    "lists": filled(b'{"data":[{"data":{"a":[', b"[]", b"]}}]}"),
    "numbers": filled(b'{"data":{"a":[', b"1.5", b"]}}"),
    "texts": filled(b'{"data":{"a":[', b'"x\\""', b"]}}"),
    "no end": filled(b'{"data":[', b"{}", b"")[:-1],
}


@pytest.fixture(scope="module")
def source() -> Iterator[Loopback]:
    with answering(lambda asked: Reply()) as server:
        yield server


@pytest.fixture(scope="module")
def front(source: Loopback) -> Iterator[Operated]:
    env = {"RUNG_UPSTREAM_URL": source.url, "RUNG_SECRET_KEY": SECRET, "RUNG_LOG_FORMAT": "json"}
    with operated(env, workers=1, threads=8) as server:
        yield server


def gives(source: Loopback, body: bytes, status: int = 200) -> None:
    """Makes the source answer everything except its schema with this body."""

    def answer(asked: Asked) -> Reply:
        if asked.target.startswith("/v1/schema"):
            return as_json(SCHEMA)
        return Reply(status, body, {"Content-Type": "application/json"})

    source.answer = answer


def asked_while_neighbours_ask(front: Operated, ask: Callable[[], Answer]) -> tuple[Answer, float]:
    """(the answer, seconds that the slowest other request took meanwhile)."""
    over, waits = threading.Event(), list[float]()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        asking.add_done_callback(lambda _: over.set())
        while True:
            begun = time.perf_counter()
            assert Api(front.url, None).get("/healthz").status == 200
            waits.append(time.perf_counter() - begun)
            if over.wait(0.001):
                return asking.result(), max(waits)


@pytest.mark.parametrize("name", SWOLLEN)
def test_millions_of_small_values_are_refused_before_they_fill_memory(
    front: Operated, source: Loopback, name: str
) -> None:
    gives(source, SWOLLEN[name])
    api = Api(front.url, "at_client")
    assert api.get("/v1/schema").status == 200
    target = f"{STREAM}/records?limit={LIMIT}"
    with Watch(front.worker) as watch:
        answer, waited = asked_while_neighbours_ask(front, lambda: api.get(target))
    assert answer.status == 413 and answer.error["code"] == "upstream_too_large", answer
    assert watch.growth < GROWTH_BYTES
    assert waited < NEIGHBOUR_SECONDS


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("tool", CALLS)
def test_as_many_values_as_are_parsed_stay_small_in_every_tool(
    front: Operated, source: Loopback, tool: str, status: int
) -> None:
    values = (b'{"%x":"%x"}' % (one, one) for one in range(BUDGETS.json_structure // 4 - 10))
    body = b'{"error":{},"window":{},"value":1,"data":{"a":[' + b",".join(values) + b"]}}"
    api = Api(front.url, "at_client")
    gives(source, body, status)
    with Watch(front.worker) as watch:
        answer = api.mcp(tool, **CALLS[tool])
    assert watch.growth < GROWTH_BYTES
    gives(source, body.replace(b"[", b"[" + b"0," * 100, 1), status)
    answer = api.mcp(tool, **CALLS[tool])
    code = "upstream_too_large" if status == 200 else "http_400"
    assert answer["structuredContent"]["error"]["code"] == code


@pytest.mark.parametrize("route", ["/v1/schema", "/introspect"])
def test_so_is_what_is_asked_about_a_token(source: Loopback, route: str) -> None:
    """A source that swells where the kind of a token is looked up."""

    def answer(asked: Asked) -> Reply:
        return Reply(200, SWOLLEN["objects"]) if asked.target.startswith(route) else Reply(404)

    source.answer = answer
    env = {"RUNG_UPSTREAM_URL": source.url, "RUNG_SECRET_KEY": SECRET, "RUNG_LOG_FORMAT": "json"}
    if route == "/introspect":
        env |= {
            "RUNG_INTROSPECTION_URL": source.url + route,
            "RUNG_INTROSPECTION_CLIENT_ID": "rung",
            "RUNG_INTROSPECTION_CLIENT_SECRET": "secret",
        }
    with operated(env, workers=1, threads=8) as server, Watch(server.worker) as watch:
        found = Api(server.url, "at_client").get(f"{STREAM}/records")
    assert found.error["code"] in ("upstream_too_large", "introspection_failed"), found
    assert watch.growth < GROWTH_BYTES


def test_long_texts_full_of_brackets_and_commas_are_no_values(
    front: Operated, source: Loopback
) -> None:
    text = ('[{"a, b": \\\\}]' * 16_384)[: 16_384 * 8] + "\\"
    rows = [row({"text": text}, f"n{number}") for number in range(50)]
    gives(source, orjson.dumps({"object": "list", "data": rows, "has_more": False}))
    answer = Api(front.url, "at_client").get(f"{STREAM}/records?limit=50")
    assert answer.status == 200
    assert [one["data"]["text"] for one in answer.body["data"]] == [text] * 50


@pytest.mark.parametrize("levels", [1, 235, 239, 240, 250, 253, 254, 1_000, 2_000])
@pytest.mark.parametrize("tool", CALLS)
def test_deep_nesting_is_served_or_a_typed_error_on_every_surface(
    front: Operated, source: Loopback, tool: str, levels: int
) -> None:
    gives(source, orjson.dumps(DEEP[tool]).replace(b'"@"', b"[" * levels + b"]" * levels))
    api = Api(front.url, "at_client")
    told, got = api.mcp(tool, **CALLS[tool]), api.get(TARGETS[tool])
    if levels <= BUDGETS.json_levels - 5:
        assert not told.get("isError") and got.status == 200, (told, got)
    if levels > BUDGETS.json_levels:
        error = told["structuredContent"]["error"]
        assert error["code"] == got.error["code"] == "upstream_invalid_response"
        assert str(BUDGETS.json_levels) in error["message"] and got.status == 503
    assert got.status in (200, 503)


@pytest.mark.parametrize("levels", [230, 245, 250, 253, 254, 900, 5_000])
def test_deep_requests_are_refused_as_such(front: Operated, source: Loopback, levels: int) -> None:
    gives(source, orjson.dumps({"data": [], "has_more": False}))
    api = Api(front.url, "at_client")
    deep = b"[" * levels + b"]" * levels
    for filled in (b'"filter":{"a":%s}', b'"cursor":%s', b'"nobody":%s', b'"stream":%s'):
        arguments = filled % deep
        if b"stream" not in filled:
            arguments += b',"stream":"notes"'
        message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query_records",'
        answer = api.post(message + b'"arguments":{%s}}}' % arguments)
        if levels < BUDGETS.json_levels:
            assert answer.status == 200 and answer.body["result"]["isError"], answer
        else:
            assert answer.status == 400 and answer.body["error"]["code"] == -32700, answer
        posted = api.send("POST", "/v1/search", b"{%s}" % arguments, JSON)
        assert posted.status < 500, posted
