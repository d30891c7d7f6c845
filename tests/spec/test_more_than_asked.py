"""A source that sends more than requested: the answer is cut, and says so."""

from collections.abc import Iterator
from typing import Any

import pytest

from evidence.limits import CONTRACT
from tests.helpers.api import Api
from tests.helpers.caller import Caller, over_http
from tests.helpers.loopback import Asked, Loopback, Reply, answering, as_json
from tests.helpers.server import serving
from tests.helpers.worlds import SECRET

SENT, LIMIT = 40, 10
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


def hit(number: int) -> dict[str, Any]:
    excerpt = {"field_path": "body", "preview_text": f"a <mark>word</mark> {number}"}
    found = {"stream": "notes", "record_key": f"n{number}", "connection_id": "c"}
    return {**found, "evidence_excerpts": [{**excerpt, "truncated": True}]}


def record(number: int) -> dict[str, Any]:
    found = {"object": "record", "id": f"n{number}", "stream": "notes", "connection_id": "c"}
    return {**found, "data": {"n": number}}


def answer_with(sent: int, **more: Any) -> Any:
    """A source that ignores limits."""

    def answer(asked: Asked) -> Reply:
        if asked.target.startswith("/v1/schema"):
            return as_json(SCHEMA)
        if "/aggregate" in asked.target:
            groups = [{"key": f"g{number}", "count": 2} for number in range(sent)]
            return as_json({"object": "aggregation", "groups": groups, **more})
        make = hit if asked.target.startswith("/v1/search") else record
        rows = [make(number) for number in range(sent)]
        return as_json({"object": "list", "data": rows, "has_more": False, **more})

    return answer


@pytest.fixture(scope="module")
def source() -> Iterator[Loopback]:
    with answering(answer_with(SENT)) as server:
        yield server


@pytest.fixture(scope="module")
def front(source: Loopback) -> Iterator[str]:
    env = {"RUNG_UPSTREAM_URL": source.url, "RUNG_SECRET_KEY": SECRET}
    with serving("wsgi:app", env) as url:
        yield url


@pytest.fixture
def api(front: str) -> Api:
    return Api(front, "at_client")


@pytest.fixture
def caller(front: str) -> Caller:
    return over_http(front, "at_client")


ARGS: dict[str, dict[str, Any]] = {
    "search": {"query": "word"},
    "query_records": {"stream": "notes", "connection_id": "c"},
}
TARGETS = {
    "search": "/v1/search?q=word",
    "query_records": "/v1/streams/notes/records?connection_id=c",
}


@pytest.mark.parametrize("more", [{}, {"has_more": True, "next_cursor": "next"}])
@pytest.mark.parametrize("tool", ARGS)
def test_a_page_is_cut_to_what_was_asked_for(
    api: Api, caller: Caller, source: Loopback, tool: str, more: dict[str, Any]
) -> None:
    source.answer = answer_with(SENT, **more)
    got = api.get(f"{TARGETS[tool]}&limit={LIMIT}")
    assert got.status == 200, got
    expected = [f"n{number}" for number in range(LIMIT)]
    assert [row.get("record_key") or row["id"] for row in got.body["data"]] == expected
    assert got.body["has_more"] is True and got.body.get("next_cursor") == more.get("next_cursor")
    (warning,) = got.body["meta"]["warnings"]
    assert warning["code"] == "partial_results" and f"limit={SENT}" in warning["message"]
    answer = caller.ok(tool, **ARGS[tool], limit=LIMIT)
    rows = answer.structured["results" if tool == "search" else "data"]
    assert len(rows if tool == "search" else rows["data"]) == LIMIT
    assert f"{SENT} rows instead of {LIMIT}" in answer.text
    assert f"limit={SENT}" in answer.text
    whole = caller.ok(tool, **ARGS[tool], limit=SENT)
    assert f"n{SENT - 1}" in whole.text and "instead of" not in whole.text


@pytest.mark.parametrize("tool", ARGS)
def test_nothing_larger_than_may_be_asked_for_is_offered(
    caller: Caller, source: Loopback, tool: str
) -> None:
    most = CONTRACT.page_items
    source.answer = answer_with(3 * most)
    assert f"limit={most}," in caller.ok(tool, **ARGS[tool], limit=LIMIT).text
    assert "arrow the request" in caller.ok(tool, **ARGS[tool], limit=most).text


def test_changes_are_cut_too(api: Api, source: Loopback) -> None:
    source.answer = answer_with(SENT, has_more=True, next_cursor="on", next_changes_since="b")
    got = api.get(f"{TARGETS['query_records']}&changes_since=beginning&limit={LIMIT}")
    assert got.status == 200 and len(got.body["data"]) == LIMIT
    assert got.body["next_cursor"] == "on" and got.body["meta"]["warnings"]


@pytest.mark.parametrize("other", [None, 5])
def test_groups_are_cut_and_counted_among_the_others(
    api: Api, caller: Caller, source: Loopback, other: int | None
) -> None:
    source.answer = answer_with(SENT, **({} if other is None else {"other_count": other}))
    got = api.get(f"/v1/streams/notes/aggregate?metric=count&group_by=kind&limit={LIMIT}")
    assert got.status == 200 and len(got.body["groups"]) == LIMIT
    counted = None if other is None else other + 2 * (SENT - LIMIT)
    assert got.body.get("other_count") == counted
    answer = caller.ok("aggregate", stream="notes", metric="count", group_by="kind", limit=LIMIT)
    assert len(answer.structured["data"]["groups"]) == LIMIT
    assert f"{SENT} groups, although the limit is {LIMIT}" in answer.text
    assert f"limit={SENT}" in answer.text
