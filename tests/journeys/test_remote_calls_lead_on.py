"""No dead ends over a remote source: its ids, its groups and its bytes."""

import base64
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.helpers.caller import Caller
from tests.helpers.loopback import Asked, Loopback, Reply, answering, as_json
from tests.helpers.reading import ours, printed_calls, structured_calls
from tests.helpers.remote import caller_of, opener

CONTENT = bytes(range(256)) * 3
IDS = (".", "..", "...", "a.b")
RECORD: dict[str, Any] = {"object": "record", "stream": "notes", "connection_id": "c.1"}
GROUPS = 250


def _record(key: str) -> dict[str, Any]:
    data = {
        "id": key,
        "image": base64.b64encode(CONTENT).decode(),
        "file": {
            "blob_id": "b/1",
            "mime_type": "image/png",
            "size_bytes": 9,
            "fetch_url": "https://elsewhere.example/b",
        },
    }
    return {**RECORD, "id": key, "data": data}


def _answer(asked: Asked) -> Reply:
    """A PDPP server without cursors of groups, which decodes each segment of a path once."""
    parts = urlsplit(asked.target)
    given = parse_qs(parts.query)
    match parts.path.split("/")[3:]:
        case ["notes", "records"]:
            return as_json({"object": "list", "has_more": False, "data": [*map(_record, IDS)]})
        case ["notes", "records", key] if unquote(key) in IDS:
            return as_json(_record(unquote(key)))
        case ["notes", "records", key, "field-window"] if unquote(key) in IDS:
            window = {"text": unquote(key), "start_chars": 0, "total_chars": len(unquote(key))}
            return as_json({**RECORD, "id": unquote(key), "window": window})
        case ["notes", "aggregate"]:
            assert "cursor" not in given
            return as_json(_groups(given))
    return as_json({"error": {"code": "not_found", "message": f"Not there: {parts.path}"}}, 404)


def _groups(given: dict[str, list[str]]) -> dict[str, Any]:
    count = 5 if given.get("granularity") == ["year"] else GROUPS
    limit = int(given.get("limit", ["10"])[0])
    groups = [{"key": f"k{n:03}", "count": 1} for n in range(count)][:limit]
    merged = {} if "connection_id" not in given else {"other_count": count - len(groups)}
    return {
        "object": "aggregation",
        "stream": "notes",
        "metric": "count",
        "group_by": given.get("group_by", [None])[0],
        "group_by_time": given.get("group_by_time", [None])[0],
        "granularity": given.get("granularity", [None])[0],
        "groups": groups,
        "limit": limit,
        **merged,
    }


@pytest.fixture
def remote() -> Iterator[Loopback]:
    with answering(_answer) as server:
        yield server


@pytest.fixture
def caller(remote: Loopback) -> Caller:
    return caller_of(opener(remote.url, "a token"))


def test_ids_of_dots_are_called_as_they_are_printed(caller: Caller) -> None:
    listed = caller.ok("query_records", stream="notes")
    printed = re.findall(r"^\d+ (\S+) source=", ours(listed.text), re.MULTILINE)
    assert len(printed) == len(IDS)
    for key, id in zip(IDS, printed):
        found = caller.ok("fetch", id=id).structured
        assert (found["id"], found["metadata"]["record_id"]) == (id, key)
        read = caller.ok("read_record_field", id=id, field_path="id")
        assert read.structured["window"]["text"] == key
        assert read.structured["record"]["id"] == id


@pytest.mark.parametrize("id", ["c.1/notes:.", "notes:..", "c.1/%2E%2E:x", "%2E%2E/notes:x"])
def test_bare_dots_and_dots_for_other_parts_reach_no_server(
    caller: Caller, remote: Loopback, id: str
) -> None:
    assert caller.fails("fetch", id=id).error["code"] == "invalid_request"
    assert remote.asked == []


@pytest.mark.parametrize("where", [{}, {"connection_id": "c.1"}])
def test_groups_a_source_cannot_page_come_with_a_warning_and_a_call(
    caller: Caller, where: dict[str, str]
) -> None:
    asked = {"stream": "notes", "metric": "count", **where}
    first = caller.ok("aggregate", **asked, group_by="kind")
    assert "only one page of groups" in first.text
    (call,) = printed_calls(first.text)
    assert call.args["limit"] == 100 and [call.key()] == [
        one.key() for one in structured_calls(first.structured)
    ]
    second = caller.ok(call.tool, **call.args)
    assert "only one page of groups" in second.text
    assert [one.tool for one in printed_calls(second.text)] == ["schema"]

    by_time = {**asked, "group_by_time": "at", "granularity": "quarter", "limit": 100}
    (call,) = printed_calls(caller.ok("aggregate", **by_time).text)
    assert call.args["granularity"] == "year"
    last = caller.ok(call.tool, **call.args)
    assert "only one page of groups" not in last.text and printed_calls(last.text) == []


def test_bytes_of_a_remote_source_have_routes_of_this_service(caller: Caller) -> None:
    for answer in (
        caller.ok("query_records", stream="notes"),
        caller.ok("fetch", id="c.1/notes:a.b"),
    ):
        assert "elsewhere.example" not in answer.text
        assert base64.b64encode(CONTENT).decode()[:40] not in answer.text
        lines = ours(answer.text)
        assert "/v1/blobs/b%2F1?connection_id=c.1" in lines
        assert "/v1/streams/notes/records/a.b?connection_id=c.1&fields=image" in lines
        assert str(len(CONTENT)) in lines
