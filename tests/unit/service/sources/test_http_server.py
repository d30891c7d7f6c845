"""The port over a socket: what is sent, what is asked again, and quirks of servers put right."""

from collections.abc import Iterator
from typing import Any

import pytest

from evidence.errors import InvalidRequest, RateLimited, TooLarge, Unavailable
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.records import RecordPage
from service.sources.remote.origin import Origin
from service.ports import (
    AggregateQuery,
    Answer,
    RecordQuery,
    RecordRead,
    ResourceServer,
    SchemaQuery,
    SearchQuery,
    WindowRequest,
)
from tests.helpers.loopback import Reply, answering, as_json
from tests.helpers.scripted import LIST, TOKEN, Ask, Scripted


@pytest.fixture
def world() -> Iterator[Scripted]:
    with answering(lambda asked: as_json(LIST)) as server:
        yield Scripted(server)


REF = RecordRef("messages", "m_emoji", "cin_demo_work")


def listed(rs: ResourceServer) -> Answer[RecordPage]:
    return rs.records(RecordQuery("messages"))


SENT: list[tuple[Ask, str]] = [
    (
        lambda rs: rs.schema(SchemaQuery("a b", "c/d")),
        "schema?view=compact&stream=a+b&connection_id=c%2Fd",
    ),
    (lambda rs: rs.schema(SchemaQuery("s", detail="full")), "schema?detail=full&stream=s"),
    (lambda rs: rs.schema(SchemaQuery(detail="document")), "schema"),
    (lambda rs: rs.streams(connection_id="c"), "streams?connection_id=c"),
    (lambda rs: rs.stream("möbel/x"), "streams/m%C3%B6bel%2Fx"),
    (lambda rs: rs.connectors(), "connectors"),
    (
        lambda rs: rs.records(
            RecordQuery(
                "s",
                "c",
                ("a", "b"),
                {"x": True, "y": {"gte": 1}},
                "-at",
                "desc",
                5,
                "cur+/=",
                "exact",
                "exact",
                "beginning",
                "basic",
                ("replies",),
                {"replies": 2},
            )
        ),
        "streams/s/records?connection_id=c&fields=a&fields=b"
        "&filter%5Bx%5D=true&filter%5By%5D%5Bgte%5D=1&sort=-at&limit=5"
        "&cursor=cur%2B%2F%3D&count=exact&view=basic"
        "&expand=replies&expand_limit%5Breplies%5D=2&order=desc&window=exact",
    ),
    (
        lambda rs: rs.records(RecordQuery("s", changes_since="beginning")),
        "streams/s/records?limit=25&changes_since=beginning",
    ),
    (
        lambda rs: rs.record(RecordRef("s", "a/b?#%", "c"), RecordRead(fields=("f",))),
        "streams/s/records/a%2Fb%3F%23%25?connection_id=c&fields=f",
    ),
    (
        lambda rs: rs.aggregate(AggregateQuery("s", "count", group_by="f", limit=3)),
        "streams/s/aggregate?metric=count&group_by=f&limit=3",
    ),
    (
        lambda rs: rs.search(SearchQuery('"a b" -c', streams=("s", "t"), limit=7)),
        "search?q=%22a+b%22+-c&streams=s&streams=t&limit=7",
    ),
    (
        lambda rs: rs.field_window(REF, "/a/0", WindowRequest(query="x", before_chars=0)),
        "streams/messages/records/m_emoji/field-window?field=%2Fa%2F0"
        "&connection_id=cin_demo_work&q=x&before_chars=0",
    ),
]


@pytest.mark.parametrize("ask, target", SENT, ids=[target.split("?")[0] for _, target in SENT])
def test_each_method_is_one_address(world: Scripted, ask: Ask, target: str) -> None:
    body = {**LIST, "connectors": [{"streams": [{"name": "s"}]}], "value": 1}
    body |= {"window": {"text": "", "start_chars": 0}}
    records: dict[str, Any] = {**body, "data": {}}
    world.gives(as_json(records if "records/a" in target else body))
    ask(world.open())
    (asked,) = world.server.asked
    assert asked.target == f"/v1/{target}"
    assert (asked.token, asked.headers["accept"]) == (TOKEN, "application/json")
    assert asked.headers["accept-encoding"] == "identity"


def test_only_what_comes_from_afar_is_asked_for_packed() -> None:
    assert Origin("https://pdpp.example.com").accepts["Accept-Encoding"] == "gzip"
    assert "Accept-Encoding" not in Origin("http://10.0.0.7:8000").accepts


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_no_name_climbs_to_another_path(world: Scripted, name: str) -> None:
    for ask in (
        lambda rs: rs.stream(name),
        lambda rs: rs.records(RecordQuery(name)),
        lambda rs: rs.record(RecordRef(name, "r")),
        lambda rs: rs.blob(name),
    ):
        assert isinstance(world.refused(ask), InvalidRequest)
    assert world.targets == []


def test_an_empty_id_is_not_asked_for(world: Scripted) -> None:
    error = world.refused(lambda rs: rs.record(RecordRef("s", "")))
    assert isinstance(error, InvalidRequest) and world.targets == []


@pytest.mark.parametrize("status", [502, 503, 504])
def test_what_passes_soon_is_asked_again(world: Scripted, status: int) -> None:
    world.gives(Reply(status), Reply(status, b"", {"Retry-After": "1"}), as_json(LIST))
    assert listed(world.open()).body == LIST
    assert world.waited == [BUDGETS.retry_pause_seconds, 1.0]


def test_after_some_times_it_is_an_error(world: Scripted) -> None:
    world.gives(Reply(503, b"", {"Retry-After": "1"}))
    assert world.refused(listed).details["retry_after"] == 1
    assert len(world.targets) == 1 + BUDGETS.upstream_retries


@pytest.mark.parametrize("told, seconds", [("60", 15.0), ("2", 3.0)])
def test_nobody_waits_long_or_past_the_deadline(world: Scripted, told: str, seconds: float) -> None:
    world.gives(Reply(429, b"", {"Retry-After": told}))
    error = world.refused(listed, seconds)
    assert isinstance(error, RateLimited) and error.details["retry_after"] == int(told)
    assert (len(world.targets), world.waited) == (1, [])


def test_a_rate_limit_without_a_time_is_passed_on(world: Scripted) -> None:
    world.gives(Reply(429))
    assert "retry_after" not in world.refused(listed).details
    assert len(world.targets) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 422, 500, 501])
def test_other_refusals_are_asked_once(world: Scripted, status: int) -> None:
    world.gives(Reply(status))
    world.refused(listed)
    assert len(world.targets) == 1


def test_an_upstream_that_keeps_failing_is_left_alone(world: Scripted) -> None:
    world.server.shutdown()
    world.server.socket.close()
    codes = [world.refused(listed) for _ in range(BUDGETS.breaker_failures + 1)]
    assert "retry_after" in codes[-1].details and "retry_after" not in codes[0].details


@pytest.mark.parametrize(
    "raw", [b"<html>", b"", b"[]", b"null", b'"x"', b'{"a":', b"\xff", b'{"a":NaN}', b"[" * 9_999]
)
def test_what_is_no_json_object_is_an_invalid_answer(world: Scripted, raw: bytes) -> None:
    world.gives(Reply(200, raw))
    error = world.refused(listed)
    assert isinstance(error, Unavailable) and error.code == "upstream_invalid_response"


WRONG: list[tuple[Ask, Any]] = [
    (listed, {}),
    (listed, {"data": {}}),
    (listed, {"data": [1]}),
    (lambda rs: rs.streams(), {"data": None}),
    (lambda rs: rs.connectors(), {"data": "x"}),
    (lambda rs: rs.record(REF), {"object": "record"}),
    (lambda rs: rs.record(REF), {"data": []}),
    (lambda rs: rs.aggregate(AggregateQuery("s", "count")), {"object": "aggregation"}),
    (lambda rs: rs.search(SearchQuery("x")), {"data": [[]]}),
    (lambda rs: rs.schema(SchemaQuery()), {"object": "schema"}),
    (lambda rs: rs.schema(SchemaQuery()), {"connectors": "x"}),
    (lambda rs: rs.field_window(REF, "body", WindowRequest()), {}),
    (lambda rs: rs.field_window(REF, "body", WindowRequest()), {"window": {"text": 1}}),
    (lambda rs: rs.field_window(REF, "body", WindowRequest()), {"window": {"text": "x"}}),
    (
        lambda rs: rs.field_window(REF, "body", WindowRequest()),
        {"window": {"text": "x", "start_chars": -1}},
    ),
]


@pytest.mark.parametrize("ask, body", WRONG, ids=[f"{n}" for n in range(len(WRONG))])
def test_an_object_of_another_kind_is_an_invalid_answer(
    world: Scripted, ask: Ask, body: Any
) -> None:
    world.gives(as_json(body))
    assert world.refused(ask).code == "upstream_invalid_response"


def test_a_body_over_the_cap_is_not_parsed(world: Scripted) -> None:
    world.gives(Reply(200, b'{"data": "' + b"x" * BUDGETS.upstream_bytes + b'"}'))
    error = world.refused(lambda rs: rs.record(REF))
    assert isinstance(error, TooLarge) and error.code == "upstream_too_large"
    assert "read_record_field" in str(error.hint)
    assert world.open().record is not None
