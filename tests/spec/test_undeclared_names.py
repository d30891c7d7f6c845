"""The argument names of PDPP tools are accepted instead of ours, but never declared."""

from typing import Any

import pytest

from tests.helpers.caller import Answer, Local
from tests.helpers.reading import printed_calls

RECORD = {"stream": "messages", "record_id": "m_long"}
ID = "mail-work/messages:m_long"
WORK = {"connection_id": "mail-work"}


def ids(answer: Answer) -> list[str]:
    return [one["id"] for one in answer.structured["data"]["data"]]


def test_no_tool_declares_them(small: Local) -> None:
    for tool in small.result("tools/list")["tools"]:
        declared = tool["inputSchema"]["properties"].keys()
        assert not declared & {"q", "order", "record_id"}, tool["name"]


@pytest.mark.parametrize("order", ["newest", "relevance"])
def test_order_is_the_sort_of_a_search(small: Local, order: str) -> None:
    assert (
        small.ok("search", q="standup", order=order).structured
        == small.ok("search", query="standup", sort=order).structured
    )


def test_an_order_that_search_does_not_have_is_refused_with_those_it_has(small: Local) -> None:
    error = small.fails("search", q="standup", order="oldest").error
    assert error["param"] == "sort" and "newest" in error["message"]


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({"order": "-received_at"}, {"sort": "-received_at"}),
        ({"order": "desc"}, {"sort": "-received_at"}),
        ({"order": "asc"}, {"sort": "received_at"}),
        ({"order": "desc", "sort": "received_at"}, {"sort": "-received_at"}),
        ({"order": "asc", "sort": "received_at"}, {"sort": "received_at"}),
    ],
)
def test_order_sorts_a_list(small: Local, given: dict[str, Any], same: dict[str, Any]) -> None:
    asked = {"stream": "messages", "limit": 3}
    first = small.ok("query_records", **asked, **given)
    assert ids(first) == ids(small.ok("query_records", **asked, **same))
    (onward,) = [call for call in printed_calls(first.text) if call.why == "next_page"]
    expected = small.ok("query_records", **{**asked, "limit": 6}, **same)
    assert ids(first) + ids(small.ok(onward.tool, **onward.args)) == ids(expected)


def test_an_order_against_its_sort_is_refused(small: Local) -> None:
    error = small.fails("query_records", stream="messages", sort="-received_at", order="asc").error
    assert error["param"] == "order"


@pytest.mark.parametrize("tool", ["fetch", "read_record_field"])
def test_a_stream_and_a_record_id_stand_for_an_id(small: Local, tool: str) -> None:
    more = {"field_path": "body"} if tool == "read_record_field" else {}
    expected = small.ok(tool, id=ID, **more)
    assert small.ok(tool, **RECORD, **WORK, **more).structured == expected.structured


def test_q_is_the_query_of_a_read(small: Local) -> None:
    asked = {"id": ID, "field_path": "body"}
    expected = small.ok("read_record_field", **asked, query="invoice").structured
    assert small.ok("read_record_field", **asked, q="invoice").structured == expected


@pytest.mark.parametrize("record_id", ["a/b", "a b", "100%", "..", "x:y"])
def test_any_record_id_is_taken_as_it_is(small: Local, record_id: str) -> None:
    error = small.fails("fetch", stream="messages", record_id=record_id, **WORK).error
    assert error["code"] in ("not_found", "invalid_request")


def test_an_error_prints_calls_with_declared_names(small: Local) -> None:
    refused = small.fails("fetch", stream="messages", record_id="m_002")
    assert refused.error["code"] == "ambiguous_connection"
    offered = [call for call in printed_calls(refused.text) if call.tool == "fetch"]
    assert offered and all(call.args.keys() == {"id", "connection_id"} for call in offered)
    assert all(small.ok(call.tool, **call.args) for call in offered)


@pytest.mark.parametrize("given", [{"stream": "messages"}, {"record_id": "m_long"}])
def test_half_of_an_id_is_refused(small: Local, given: dict[str, str]) -> None:
    assert small.fails("fetch", **given).error["param"] in given
