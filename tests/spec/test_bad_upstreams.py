"""Whatever an upstream does, callers get a typed error in time, and memory stays flat."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from evidence.errors import KINDS
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.sources.remote.server import HttpResourceServer
from service.sources.remote.origin import Origin
from tests.helpers.asset_server import AssetServer, Mode, asset_server
from tests.helpers.caller import Answer, Caller
from tests.helpers.loopback import Loopback, Reply, answering, as_json
from tests.helpers.memory import peak_growth
from tests.helpers.remote import caller_of
from tests.helpers.replay import Recorded, raw_body, recorded, refusals
from tests.helpers.scale import times

TOKEN = "tok-very-secret"
SECONDS = 0.2
ENOUGH = 10.0
PATIENCE = 15.0
FLAT_BYTES = 24 * 1_048_576
TARGET = "/v1/search?q=invoice&limit=10"
HITS = orjson.dumps({"object": "list", "data": [], "has_more": False, "meta": {}})
CALLS = {
    "schema": {},
    "query_records": {"stream": "messages"},
    "aggregate": {"stream": "messages", "metric": "count"},
    "search": {"query": "invoice"},
    "fetch": {"id": "c/messages:m"},
    "read_record_field": {"id": "c/messages:m", "field_path": "body"},
}
TYPED = {kind.default_code for kind in KINDS} | {
    "upstream_timeout",
    "upstream_too_large",
    "upstream_invalid_response",
    "upstream_busy",
}


@pytest.fixture
def bad() -> Iterator[AssetServer]:
    with asset_server({TARGET: HITS}) as server:
        yield server


@pytest.fixture
def odd() -> Iterator[Loopback]:
    with answering(lambda asked: Reply()) as server:
        yield server


def caller(url: str, seconds: float = ENOUGH) -> Caller:
    """A caller whose requests may wait only briefly for their upstream."""
    origin = Origin(url, pause=lambda seconds: None)
    return caller_of(lambda: HttpResourceServer(origin, TOKEN, Deadline.after(seconds)))


def failing(asker: Caller, tool: str = "search") -> Answer:
    """The error of a call, which must come in time and reveal no secrets."""
    patience = Deadline.after(PATIENCE)
    answer = asker.fails(tool, **CALLS[tool])
    assert not patience.expired()
    shown = f"{answer.text} {answer.structured}".lower()
    for secret in (TOKEN, "127.0.0.1", "://", "<html", "<!doctype"):
        assert secret not in shown
    assert len(answer.text) < BUDGETS.text_bytes
    return answer


def test_the_same_server_when_it_is_good(bad: AssetServer) -> None:
    assert caller(bad.url).ok("search", query="invoice").structured["results"] == []


@pytest.mark.parametrize(
    "mode, code",
    [
        ("stall", "upstream_timeout"),
        ("drip_head", "upstream_timeout"),
        ("drip_open", "upstream_timeout"),
        ("reset", "upstream_unreachable"),
        ("wrong_length", "upstream_unreachable"),
        ("html", "upstream_invalid_response"),
        ("redirect_loop", "upstream_invalid_response"),
        ("redirect_other", "upstream_invalid_response"),
        ("redirect_body", "upstream_invalid_response"),
        ("500", "upstream_unreachable"),
    ],
)
def test_a_server_that_misbehaves_is_a_typed_error(bad: AssetServer, mode: Mode, code: str) -> None:
    bad.mode = mode
    seconds = SECONDS if code == "upstream_timeout" else ENOUGH
    assert failing(caller(bad.url, seconds)).error["code"] == code


@pytest.mark.parametrize("mode", ["stall", "reset", "drip_head"])
@pytest.mark.parametrize("tool", CALLS)
def test_so_it_is_for_every_tool(bad: AssetServer, tool: str, mode: Mode) -> None:
    bad.mode = mode
    assert failing(caller(bad.url, SECONDS), tool).error["code"] in TYPED


@pytest.mark.parametrize("mode", ["huge", "chunked_huge", "gzip_bomb", "redirect_body"])
def test_no_body_fills_memory(bad: AssetServer, mode: Mode) -> None:
    bad.mode = mode
    asker = caller(bad.url)
    codes = list[str]()
    growth = peak_growth(lambda: codes.append(failing(asker).error["code"]))
    assert codes[0] in ("upstream_too_large", "upstream_invalid_response")
    assert growth < BUDGETS.upstream_bytes + FLAT_BYTES


def test_a_server_that_is_gone_is_a_typed_error(bad: AssetServer) -> None:
    bad.end()
    bad.socket.close()
    assert failing(caller(bad.url)).error["code"] == "upstream_unreachable"


@pytest.mark.parametrize("status", [*range(201, 206), *range(300, 309), *range(400, 432), 451])
def test_every_status_is_a_typed_error(odd: Loopback, status: int) -> None:
    odd.answer = lambda asked: Reply(status, b"" if status in (204, 304) else b"<html>no</html>")
    error = failing(caller(odd.url)).error
    assert error["code"] in TYPED or error["code"] == f"http_{status}"


@pytest.mark.parametrize("status", [500, 501, 502, 503, 504, 505, 511, 520, 599])
@pytest.mark.parametrize("told", ["", "0", "86400", "-5", "Sat, 21 Nov 2099 00:00:00 GMT", "soon"])
def test_every_server_error_is_one_too_whatever_it_says_of_time(
    odd: Loopback, status: int, told: str
) -> None:
    headers = {"Retry-After": told, "Date": "Thu, 01 Jan 1970 00:00:00 GMT"}
    odd.answer = lambda asked: Reply(status, b"oh", headers)
    error = failing(caller(odd.url)).error
    assert error["code"] in (*TYPED, f"http_{status}")
    assert 0 <= error.get("retry_after", 0) <= 86_400


@pytest.mark.parametrize("found", refusals(), ids=lambda found: str(found["name"]))
def test_every_recorded_refusal_reaches_a_reader(odd: Loopback, found: Recorded) -> None:
    odd.answer = lambda asked: Reply(found["status"], raw_body(found), found["headers"])
    answer = failing(caller(odd.url), "query_records")
    said = found["body"].get("error")
    if isinstance(said, dict):
        assert answer.error["code"] == said["code"]
        assert said["message"].split(".")[0] in answer.text


@pytest.mark.parametrize(
    "raw",
    [b'{"data": [', b"[]", b"\xff\xff", b"null", b"NaN", b'{"data": 5}', b"[" * 100_000],
    ids=range(7),
)
@pytest.mark.parametrize("tool", CALLS)
def test_a_body_that_is_not_what_was_asked_for_is_a_typed_error(
    odd: Loopback, tool: str, raw: bytes
) -> None:
    odd.answer = lambda asked: Reply(200, raw)
    assert failing(caller(odd.url), tool).error["code"] == "upstream_invalid_response"


#: A recorded answer, and the call that is answered with it.
ANSWERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("schema_compact", "schema", {}),
    ("schema_compact_owner", "schema", {"stream": "messages"}),
    ("schema_fulldetail_conn", "schema", {"stream": "messages", "detail": "full"}),
    ("records_conn_limit2", "query_records", {"stream": "messages", "limit": 2}),
    ("records_limit2", "query_records", {"stream": "messages", "limit": 2}),
    ("changes_begin", "query_records", {"stream": "messages", "limit": 2}),
    ("agg_group", "aggregate", {"stream": "messages", "metric": "count"}),
    ("search_basic", "search", {"query": "invoice", "limit": 3}),
    ("record_get_full", "fetch", {"id": "messages:m"}),
    ("fw_q", "read_record_field", {"id": "c/messages:m", "field_path": "body"}),
)
ODD = st.sampled_from(
    [None, True, 0, -1, 1.5, 10**15, "", "x", "\u202e\x00", "<mark>", "x" * 999]
    + [[], {}, [1], ["a"], [{}], {"a": 1}, {"blob_id": 1}, {"object": "binary_field"}]
)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every part of a JSON value."""
    listed = enumerate(value) if isinstance(value, list) else ()
    for key, part in value.items() if isinstance(value, dict) else listed:
        yield (*way, key)
        yield from places(part, (*way, key))


@pytest.fixture(scope="module")
def bent() -> Iterator[tuple[Loopback, Caller]]:
    with answering(lambda asked: Reply()) as server:
        yield server, caller(server.url)


@pytest.mark.parametrize(("name", "tool", "args"), ANSWERS, ids=[each[0] for each in ANSWERS])
@settings(max_examples=times(60, 30))
@given(data=st.data())
def test_an_answer_with_any_part_replaced_is_read_or_refused(
    bent: tuple[Loopback, Caller], name: str, tool: str, args: dict[str, Any], data: st.DataObject
) -> None:
    server, asker = bent
    body = deepcopy(recorded(name)["body"])
    way = data.draw(st.sampled_from(list(places(body))))
    holder = body
    for key in way[:-1]:
        holder = holder[key]
    holder[way[-1]] = data.draw(ODD)
    server.answer = lambda asked: as_json(body)
    answer = asker.call(tool, **args)
    assert answer.text and len(answer.text.encode()) <= BUDGETS.schema_bytes
