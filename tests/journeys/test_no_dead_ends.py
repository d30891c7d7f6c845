"""Whatever is printed works: every call, every id, every cursor, called back as it stands."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.golden.transcripts import CALLS
from tests.helpers.caller import Answer, Local
from tests.helpers.reading import named, ours, printed_calls, structured_calls
from tests.spec.scenarios import scenario

DEMO = (
    ("schema", {}),
    ("schema", {"stream": "messages"}),
    ("schema", {"stream": "notes", "detail": "full"}),
    ("search", {"query": "invoice harbour"}),
    ("search", {"query": "鍵"}),
    ("search", {"query": "🎉", "limit": 25}),
    ("search", {"query": "copper key"}),
    ("query_records", {"stream": "notes", "limit": 30}),
    ("query_records", {"stream": "messages", "limit": 100}),
    ("query_records", {"stream": "threads", "limit": 3, "expand": ["messages"]}),
    (
        "query_records",
        {"stream": "messages", "connection_id": "gmail-work", "changes_since": "beginning"},
    ),
    ("fetch", {"id": "notes/notes:chronicle"}),
    ("fetch", {"id": "notes/notes:log", "fields": ["outline"]}),
    ("read_record_field", {"id": "notes/notes:atlas", "field_path": "text", "query": "copper key"}),
    (
        "read_record_field",
        {"id": "notes/notes:log", "field_path": "outline", "limit_chars": 16_384},
    ),
)
HOSTILE = (
    ("schema", {}),
    ("schema", {"stream": "broad"}),
    ("schema", {"stream": "odd:ids/here"}),
    ("schema", {"stream": "fields"}),
    ("search", {"query": "marrow", "limit": 30}),
    ("search", {"query": "pumpkin", "limit": 20}),
    ("query_records", {"stream": "odd:ids/here", "limit": 40}),
    ("query_records", {"stream": "fields"}),
    ("query_records", {"stream": "forged"}),
    ("query_records", {"stream": "long"}),
    ("query_records", {"stream": "broad", "limit": 12}),
    ("fetch", {"id": "broad/broad:b1"}),
    ("fetch", {"id": "forged/forged:big"}),
    ("fetch", {"id": "forged/long:cjk"}),
    ("read_record_field", {"id": "forged/long:controls", "field_path": "text"}),
    ("read_record_field", {"id": "forged/forged:big", "field_path": "data"}),
)


def handles(answer: Answer) -> Iterator[str]:
    """Every record id an answer shows, in either channel."""
    yield from re.findall(r"^\d+ (\S+/\S+:\S+) ", ours(answer.text), re.MULTILINE)
    yield from re.findall(r"first_id=(\S+)", answer.lines[0])
    structured = answer.structured
    ladder = structured.get("content_ladder", {}).get("records", [])
    yield from (rung["id"] for rung in [*ladder, *structured.get("results", [])])
    yield from (id for ids in named(structured, "ids") for id in ids)
    for name, value in structured.get("metadata", {}).items():
        if name.startswith("expanded.") and isinstance(value, str):
            yield from value.split()


def close(one: Local, tool: str, args: dict[str, Any]) -> tuple[int, int]:
    """Calls back everything one answer offers; returns how many calls and ids that were."""
    answer = one.call(tool, **args)
    found = [*printed_calls(answer.text), *structured_calls(answer.structured)]
    calls = {call.key(): call for call in found}
    for call in calls.values():
        one.ok(call.tool, **call.args)
    ids = set(handles(answer))
    gone = {id for id in ids if f" {id} " in answer.text and "deleted=true" in answer.text}
    for id in ids - gone:
        assert one.ok("fetch", id=id).structured["id"] == id
    return len(calls), len(ids)


@pytest.mark.parametrize("name", CALLS)
@scenario("000/handles/record-uri-works", "001/tokens/omissions-are-callable")
def test_everything_a_golden_transcript_offers_works(small: Local, name: str) -> None:
    tool, args = CALLS[name]
    close(small, tool, args)


@pytest.mark.parametrize(("tool", "args"), DEMO)
def test_everything_an_answer_of_the_demo_offers_works(
    demo: Local, tool: str, args: dict[str, Any]
) -> None:
    calls, ids = close(demo, tool, args)
    assert calls + ids > 0


@pytest.mark.parametrize(("tool", "args"), HOSTILE)
def test_everything_an_answer_of_a_hostile_world_offers_works(
    hostile: Local, tool: str, args: dict[str, Any]
) -> None:
    calls, ids = close(hostile, tool, args)
    assert calls + ids > 0


def test_ambiguity_leads_to_calls_that_work(wide: Local) -> None:
    for tool, args in (
        ("fetch", {"id": "messages:w1"}),
        ("schema", {"stream": "messages", "detail": "full"}),
    ):
        answer = wide.fails(tool, **args)
        for entry in answer.error["available_connections"]:
            wide.ok(tool, **args, connection_id=entry["connection_id"])
        close(wide, tool, args)
