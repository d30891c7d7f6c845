"""Problems that a new user met on the first day and must not meet again."""

import json

from tests.helpers.caller import Local


def test_a_pointer_into_a_long_text_is_told_that_nothing_lies_there(demo: Local) -> None:
    answer = demo.call("read_record_field", id="notes/notes:atlas", field_path="/text/0")
    assert answer.structured["error"]["code"] == "field_not_found"


def test_a_document_shows_every_field_or_the_call_that_does(demo: Local) -> None:
    found = demo.ok("search", query="invoice", streams=["messages"], connection_id="gmail-work")
    handle = found.structured["results"][0]["id"]
    metadata = demo.ok("fetch", id=handle).structured["metadata"]
    assert {"data.from", "data.received_at", "data.folder"} <= metadata.keys()
    narrow = demo.ok("fetch", id=handle, fields=["from", "body"]).structured
    assert narrow["metadata"]["data.from"]
    assert "data.folder" not in narrow["metadata"]


def test_a_field_of_some_sources_of_a_shared_stream_names_them_with_calls(demo: Local) -> None:
    answer = demo.call("aggregate", stream="messages", metric="count", group_by="folder")
    error = answer.structured["error"]
    assert error["code"] == "ambiguous_connection"
    named = {one["connection_id"] for one in error["available_connections"]}
    assert named == {"gmail-home", "gmail-work"}
    retry = error["next"][0]
    assert demo.ok(retry["tool"], **retry["args"]).structured["data"]["groups"]


def test_related_records_beyond_the_limit_have_a_call_that_lists_them(demo: Local) -> None:
    page = demo.ok(
        "query_records",
        stream="threads",
        limit=20,
        expand=["messages"],
        expand_limit={"messages": 1},
    )
    calls = [
        call
        for rung in page.structured["content_ladder"]["records"]
        for call in rung.get("related", ())
    ]
    assert calls
    for call in calls[:3]:
        assert json.dumps(call["args"], separators=(",", ":"), ensure_ascii=False) in page.text
        listed = demo.ok(call["tool"], **call["args"]).structured["data"]["data"]
        assert len(listed) > 1
