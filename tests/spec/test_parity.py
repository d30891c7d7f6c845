"""REST, structured content and text say the same, checked mechanically for every kind of call."""

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest

from evidence import handles, hits_wire, wire
from evidence.limits import BUDGETS
from service.pdpp.decode import schema, search
from service.pdpp.decode.records import decode_buckets, decode_field, decode_page, decode_record
from evidence.text import unescape
from renderers import field as field_renderer
from renderers import records as record_renderer
from renderers import schema as schema_renderer
from renderers.document import lay_out
from renderers import search as search_renderer
from renderers.rendering import Context
from service.mcp.surface import RecordsSurface
from service.operations import OPERATIONS
from tests.helpers.api import record_path, route_of
from tests.helpers.caller import Answer, Local
from tests.helpers import reading
from tests.helpers.reading import fenced, named, ours, printed_calls, structured_calls
from tests.helpers.small import LONG_ID
from tests.spec.scenarios import scenario

WORK = {"stream": "messages", "connection_id": "mail-work"}
LONG = {"id": LONG_ID, "field_path": "body"}
EXAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("schema", {}),
    ("schema", {"stream": "messages"}),
    ("schema", {"stream": "messages", "connection_id": "mail-work"}),
    ("search", {"query": "invoice number", "limit": 10}),
    ("search", {"query": "standup*", "limit": 3}),
    ("search", {"query": "tag -friday", "limit": 10}),
    ("search", {"query": "zebra", "limit": 10}),
    ("search", {"query": "invoice", "streams": ["messages"], "limit": 2}),
    ("query_records", {**WORK, "limit": 3}),
    ("query_records", {**WORK, "limit": 2, "count": "exact", "fields": ["id", "subject"]}),
    ("query_records", {**WORK, "filter": {"received_at": {"gte": "2026-04-20T00:00:00Z"}}}),
    ("query_records", {**WORK, "filter": {"id": "m_long"}}),
    ("query_records", {**WORK, "filter": {"id": "m_001"}, "expand": ["attachments"]}),
    ("query_records", {**WORK, "changes_since": "beginning", "limit": 2}),
    ("query_records", {"stream": "notes", "filter": {"id": "picture"}}),
    ("aggregate", {**WORK, "metric": "count"}),
    ("aggregate", {**WORK, "metric": "sum", "field": "size"}),
    ("aggregate", {**WORK, "metric": "count", "group_by": "folder", "limit": 1}),
    (
        "aggregate",
        {**WORK, "metric": "count", "group_by_time": "received_at", "granularity": "day"},
    ),
    ("fetch", {"id": "mail-work/messages:m_002"}),
    ("fetch", {"id": "mail-work/messages:m_002", "fields": ["subject"]}),
    ("fetch", {"id": "mail-work/messages:m_001", "expand": ["attachments"]}),
    ("fetch", {"id": "notes/diary:d3"}),
    ("fetch", {"id": LONG_ID}),
    ("read_record_field", LONG),
    ("read_record_field", {**LONG, "query": "invoice number", "before_chars": 9}),
    (
        "read_record_field",
        {**LONG, "query": "lorem", "limit_chars": 50, "match": 3, "before_chars": 0},
    ),
    ("read_record_field", {**LONG, "offset_chars": 25_000, "limit_chars": 100}),
    ("read_record_field", {"id": "notes/notes:nested", "field_path": "/outline/a~1b/0/c"}),
    ("read_record_field", {"id": "notes/notes:picture", "field_path": "image"}),
)
EVERY = pytest.mark.parametrize(("tool", "args"), EXAMPLES)


def wired(tool: str, args: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The expected structured content, made from a REST body alone."""
    if tool == "schema":
        described = replace(schema.read(body), args=args)
        return schema_renderer.render(described, Context()).structured
    if tool == "search":
        page = replace(search.read(body), args=args)
        found = search_renderer.fit(page, BUDGETS)
        return hits_wire.structured(found, found.continuations())
    if tool == "query_records":
        listed = replace(decode_page(body, args["stream"]), args=args)
        fitted = record_renderer.fit(listed, BUDGETS)
        assert len(fitted.records) == len(listed.records)
        return wire.records(fitted, fitted.continuations())
    if tool == "aggregate":
        return wire.aggregate(replace(decode_buckets(body), args=args))
    ref = handles.parse(args["id"])
    if tool == "fetch":
        return wire.document(
            lay_out(decode_record(body, ref), url=ref._replace(connection_id=None).url)
        )
    read = replace(decode_field(body, ref, args["field_path"]), args=args)
    return wire.field(field_renderer.fit(read, BUDGETS))


@EVERY
@scenario("004/tools/same-contract-same-grant", "000/parity/rest-describes-evidence")
def test_structured_content_is_made_of_the_rest_body_alone(
    small: Local, tool: str, args: dict[str, Any]
) -> None:
    path, params = route_of(tool, args)
    answer = small.api.rest(path, **params)
    assert answer.status == 200, answer
    told = small.ok(tool, **args).structured
    body = answer.body
    if tool == "search" and "tail_cut" in told["data"]["meta"]:
        body = cut(body, len(told["results"]), told["data"]["next_cursor"])
    assert orjson.loads(orjson.dumps(wired(tool, args, body))) == told


def cut(body: dict[str, Any], shown: int, cursor: str) -> dict[str, Any]:
    """A REST page, whose tail is never cut, cut at the point where MCP ends the page."""
    assert 3 <= shown < len(body["data"]), "only what follows the third hit is cut"
    assert "tail_cut" not in body["meta"]
    meta = {**body["meta"], "tail_cut": True}
    more = {"has_more": True, "next_cursor": cursor}
    return {**body, **more, "data": body["data"][:shown], "meta": meta}


def test_every_operation_has_an_example_and_its_own_examples_load() -> None:
    assert {tool for tool, _ in EXAMPLES} == {operation.name for operation in OPERATIONS}
    for operation in OPERATIONS:
        assert operation.examples
        for example in operation.examples:
            operation.load(example)
    assert [tool["name"] for tool in RecordsSurface().tools] == [o.name for o in OPERATIONS]


@EVERY
def test_every_call_of_one_channel_is_in_the_other(
    small: Local, tool: str, args: dict[str, Any]
) -> None:
    answer = small.ok(tool, **args)
    assert {call.key() for call in printed_calls(answer.text)} == {
        call.key() for call in structured_calls(answer.structured)
    }


@EVERY
@scenario("001/tokens/text-alone-suffices")
def test_every_id_cursor_count_and_excerpt_is_in_both_channels(
    small: Local, tool: str, args: dict[str, Any]
) -> None:
    check_channels(small.ok(tool, **args))


def check_channels(answer: Answer) -> None:
    """Checks ids, cursors, bookmarks, counts, warnings and record text, in both directions."""
    structured, text = answer.structured, answer.text
    payload = [record.pop("data", None) for record in _records(structured)]
    for name in ("next_cursor", "next_changes_since", "connection_id"):
        for value in named(structured, name):
            assert value in text, (name, value)
    rungs = structured.get("content_ladder", {}).get("records", [])
    ids = [rung["id"] for rung in rungs]
    assert [found[1] for found in re.finditer(r"^\d+ (\S+) ", text, re.MULTILINE)] == ids
    shown = fenced(text)
    previews = [one for rung in rungs for one in reading.previews(rung)]
    if previews:
        quoted = [one for one in previews if orjson.dumps(one).decode() in ours(text)]
        assert shown == [one for one in previews if one not in quoted]
        assert len(shown) >= min(3, len(rungs)) or len(quoted) == len(previews)
    elif payload:
        assert [_without_related(orjson.loads(unescape(one))) for one in shown] == payload
    elif "window" in structured:
        assert [unescape(one) for one in shown] == [structured["window"]["text"]]
    for count in named(structured, "count"):
        if isinstance(count, dict) and "value" in count:
            assert f"{count['kind']}:{count['value']}" in text
    for group in [group for groups in named(structured, "groups") for group in groups]:
        assert re.search(rf"^\S+ {group['count']}$", text, re.MULTILINE)
    for found in [one for listed in named(structured, "warnings") for one in listed]:
        assert found["code"] in text


def _records(structured: dict[str, Any]) -> list[dict[str, Any]]:
    data = structured.get("data")
    listed = data.get("data", []) if isinstance(data, dict) else []
    return [dict(record) for record in listed]


def _without_related(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name != "expanded"}


def test_both_channels_agree_on_hostile_records_too(hostile: Local) -> None:
    for answer in (
        hostile.ok("search", query="marrow", limit=30),
        hostile.ok("search", query="pumpkin"),
        hostile.ok("query_records", stream="forged"),
        hostile.ok("query_records", stream="odd:ids/here", limit=40),
        hostile.ok("query_records", stream="broad", limit=4),
        hostile.ok("read_record_field", id="forged/forged:controls", field_path="text"),
    ):
        check_channels(answer)
        assert {call.key() for call in printed_calls(answer.text)} == {
            call.key() for call in structured_calls(answer.structured)
        }


def test_a_rest_next_link_and_a_printed_next_page_are_the_same_page(small: Local) -> None:
    args = {**WORK, "limit": 5}
    rest = small.api.get(
        small.get(route_of("query_records", args)[0] + "?limit=5&connection_id=mail-work")["links"][
            "next"
        ]
    )
    answer = small.ok("query_records", **args)
    (call,) = printed_calls(answer.text)
    listed = small.ok(call.tool, **call.args).structured["data"]["data"]
    assert [row["id"] for row in rest.body["data"]] == [row["id"] for row in listed]
    assert small.get(record_path("messages", "m_002") + "?connection_id=mail-work")["id"] == "m_002"
