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
    """As many values as a body of an upstream may have bytes for."""
    room = BUDGETS.upstream_bytes - len(head) - len(tail)
    return head + b",".join([value] * (room // (len(value) + 1))) + tail


def row(data: dict[str, Any], key: str = "n") -> dict[str, Any]:
    return {"object": "record", "id": key, "stream": "notes", "connection_id": "c", "data": data}


def nested(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = [value]
    return value


#: Bodies of 16 MB that hold millions of values.
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
    """Lets the source answer everything but its schema so."""

    def answer(asked: Asked) -> Reply:
        if asked.target.startswith("/v1/schema"):
            return as_json(SCHEMA)
        return Reply(status, body, {"Content-Type": "application/json"})

    source.answer = answer


def asked_while_neighbours_ask(front: Operated, ask: Callable[[], Answer]) -> tuple[Answer, float]:
    """(the answer, how long the slowest neighbour waited meanwhile)."""
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
    print(name, watch.growth / MB, waited)
    assert answer.status == 413 and answer.error["code"] == "upstream_too_large", answer
    assert watch.growth < GROWTH_BYTES
    assert waited < NEIGHBOUR_SECONDS
