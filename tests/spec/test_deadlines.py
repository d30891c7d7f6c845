"""A request has one deadline, counted from its arrival, whatever is in it."""

import math
import string
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import orjson
import pytest

from evidence import work
from evidence.errors import NotFound
from evidence.limits import BUDGETS
from service.mcp.protocol import handle
from service.mcp.server import Server
from service.mcp.surface import RecordsSurface
from service.mcp.validation import Headers
from service.operations.base import Session
from service.records.store import Store
from service.running.connection import ARRIVAL
from tests.helpers import worlds
from tests.helpers.posting import JSON, legacy_body
from tests.helpers.worlds import Connection, House, World

DEADLINE = "deadline_exceeded"
#: CPU seconds that a request may work on after its deadline; a loaded machine counts as slow.
OVERSHOOT_SECONDS = 0.25
#: The looks at the clock after the first late one: each item of a page may be left out by itself.
LATER_LOOKS = 250


class Clock:
    """A clock that a test sets. Notes how much CPU time passes between two looks at it."""

    def __init__(self, late_after: float = math.inf) -> None:
        self.now, self.looks, self.longest = 0.0, 0, 0.0
        self._late_after, self._last = late_after, time.thread_time()

    def __call__(self) -> float:
        self.looks += 1
        here = time.thread_time()
        self.longest, self._last = max(self.longest, here - self._last), here
        return self.now if self.looks <= self._late_after else self.now + 3_600


@contextmanager
def request_by(clock: Clock) -> Iterator[None]:
    """A request that arrives now, by this clock."""
    work.begin(BUDGETS.store_seconds, clock=clock)
    try:
        yield
    finally:
        work.end()


@pytest.mark.parametrize("target", ["/v1/search?q=invoice", "/v1/streams", "/mcp", "/connect"])
def test_a_request_that_waited_until_its_deadline_is_not_run(
    small_house: House, target: str
) -> None:
    method, body = "GET", b""
    if target == "/mcp":
        method, body = "POST", orjson.dumps(legacy_body("tools/call", {"name": "schema"}))
    headers = {"Authorization": f"Bearer {small_house.grant()[1]}", **JSON}
    arrived = {ARRIVAL: monotonic() - BUDGETS.store_seconds}
    answer = small_house.app.test_client().open(
        target, method=method, data=body, headers=headers, environ_overrides=arrived
    )
    error = orjson.loads(answer.data)["error"]
    assert (answer.status_code, error.get("data", error)["code"]) == (504, DEADLINE)


def batch(app: Any, token: str, *messages: dict[str, Any]) -> tuple[int, Any]:
    """The status and the body of the answer to a batch."""
    headers = {"Authorization": f"Bearer {token}", **JSON}
    answer = app.test_client().post("/mcp", data=orjson.dumps(messages), headers=headers)
    return answer.status_code, orjson.loads(answer.data)


def search(id: int) -> dict[str, Any]:
    return legacy_body("tools/call", {"name": "search", "arguments": {"query": "invoice"}}, id=id)


def code_of(answer: dict[str, Any]) -> str | None:
    """The code of the error in a tool result; None for a result without one."""
    result = answer["result"]
    return result["structuredContent"]["error"]["code"] if result.get("isError") else None


def test_every_message_of_a_batch_counts_for_the_rate_limit(small_house: House) -> None:
    app = small_house.application(RUNG_RATE_LIMIT_TOKEN="3/hour")
    token = small_house.grant()[1]
    status, answers = batch(app, token, *(search(id) for id in range(5)))
    assert status == 200 and [answer["id"] for answer in answers] == [0, 1, 2, 3, 4]
    assert [*map(code_of, answers)] == [None] * 3 + ["rate_limit_exceeded"] * 2
    assert batch(app, token, search(0))[0] == 429


def test_a_batch_over_the_setting_runs_nothing(small_house: House) -> None:
    app = small_house.application(RUNG_BATCH_MESSAGES="2", RUNG_RATE_LIMIT_TOKEN="3/hour")
    token = small_house.grant()[1]
    status, refused = batch(app, token, *(search(id) for id in range(3)))
    assert (status, refused["error"]["code"]) == (400, -32600)
    status, answers = batch(app, token, search(0), search(1))
    assert status == 200 and [*map(code_of, answers)] == [None, None]


class Slow:
    """A resource server whose first answer takes until after the deadline."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.asked = clock, 0

    def schema(self, query: Any) -> Any:
        self.asked += 1
        self._clock.now += BUDGETS.store_seconds
        raise NotFound("There is nothing here.")


def test_messages_after_the_deadline_of_a_batch_are_errors_in_the_array() -> None:
    clock = Clock()
    slow: Any = Slow(clock)
    call = {"name": "schema", "arguments": {}}
    messages = [legacy_body("tools/call", call, id=id) for id in (1, 2)]
    read = legacy_body("resources/read", {"uri": "pdpp://stream/notes"}, id=3)
    messages += [read, legacy_body("ping", id=4)]
    with request_by(clock):
        raw, session = orjson.dumps(messages), Session(slow)
        reply = handle(Server(RecordsSurface()), raw, Headers({}), session, again=lambda: session)
    assert reply.status == 200 and reply.body is not None
    first, second, third, last = orjson.loads(reply.body)
    assert [code_of(first), code_of(second)] == ["not_found", DEADLINE]
    assert third["error"]["data"]["code"] == DEADLINE
    assert last["result"] == {} and slow.asked == 1


LETTERS = string.ascii_lowercase
WIDE_FIELDS, WIDE_RECORDS, LONG_RECORDS, VALUES = 30, 10, 8, 2_000


@pytest.fixture(scope="module")
def costly(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Session]:
    """Opens sessions over a store whose records make calls slow."""
    names = [f"f{number}" for number in range(WIDE_FIELDS)]
    crowded = " ".join(LETTERS) + " "
    wide = worlds.stream(
        "wide",
        dict.fromkeys(names, worlds.text()),
        query={"search": {"lexical_fields": names}},
    )
    long = worlds.stream(
        "long",
        {"text": worlds.text("primary-text"), "note": worlds.text()},
        query={
            "search": {"lexical_fields": ["text", "note"]},
            "aggregations": {"group_by": ["note"], "count_distinct": ["note"]},
        },
    )
    rows = [
        worlds.row("wide", f"w{number}", **dict.fromkeys(names, (crowded * 22)[:2_000]))
        for number in range(WIDE_RECORDS)
    ]
    rows += [
        worlds.row("long", f"l{number}", text=crowded * 600, note=f"lantern {number}")
        for number in range(LONG_RECORDS)
    ]
    rows += [worlds.row("long", f"v{number}", note=f"word{number}") for number in range(VALUES)]
    world = World((Connection("made", "made", None, (wide, long), tuple(rows)),))
    house = worlds.build(world, tmp_path_factory.mktemp("costly"))
    store, (_, token) = Store(house.path), house.grant()
    return lambda: Session(store.open(token), fence_key=store.fence_key)


EVERY_LETTER = " ".join(LETTERS)
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search", {"query": EVERY_LETTER, "limit": 10}),
    ("search", {"query": f"lantern {EVERY_LETTER}", "words": "all", "limit": 10}),
    ("search", {"query": " ".join(f"wrod{number}" for number in range(40)), "limit": 100}),
    ("query_records", {"stream": "wide", "limit": 100, "count": "exact"}),
    ("aggregate", {"stream": "long", "metric": "count", "group_by": "note", "limit": 100}),
    ("fetch", {"id": "made/wide:w1"}),
    (
        "read_record_field",
        {"id": "made/long:l1", "field_path": "text", "query": f"lantern {EVERY_LETTER}"},
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, arguments", CALLS, ids=[f"{n}{i}" for i, (n, _) in enumerate(CALLS)]
)
def test_a_costly_call_stops_soon_after_the_deadline(
    costly: Callable[[], Session], name: str, arguments: dict[str, Any]
) -> None:
    surface = RecordsSurface()
    for _ in range(2):  # the first call also does what is kept for later ones
        whole = Clock()
        with request_by(whole):
            assert not surface.call(name, arguments, costly()).get("isError")
    assert whole.longest < OVERSHOOT_SECONDS
    for share in (0.0, 0.2, 0.4, 0.6, 0.8):
        clock = Clock(late_after=max(1, int(whole.looks * share)))  # the first is its arrival
        with request_by(clock):
            try:
                result = surface.call(name, arguments, costly())
            except work.TimedOut:  # when the session opened
                continue
        warned = orjson.dumps(result["structuredContent"])
        assert code_of({"result": result}) == DEADLINE or b"rendering_timed_out" in warned
        assert clock.looks - whole.looks * share < LATER_LOOKS
