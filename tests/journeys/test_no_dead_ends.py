"""Whatever is printed works: every call, every id, every cursor, called back as it stands."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.golden.transcripts import CALLS
from tests.helpers import worlds
from tests.helpers.caller import Answer, Local
from tests.helpers.reading import named, ours, printed_calls, structured_calls
from tests.spec.bad_calls import CASES, MAIL
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
    ("fetch", {"id": "notes/notes:birds", "fields": ["outline"]}),
    ("read_record_field", {"id": "notes/notes:atlas", "field_path": "text", "query": "copper key"}),
    (
        "read_record_field",
        {"id": "notes/notes:birds", "field_path": "outline", "limit_chars": 16_384},
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


NOT_THERE = ("not_found", "ambiguous_connection", "query_not_found", "field_not_found")
#: Refused calls with something else that is wrong, or a record that is not named in full.
TWICE_WRONG: tuple[tuple[str, dict[str, Any]], ...] = (
    ("read_record_field", {"id": "m1"}),
    ("read_record_field", {"id": "mail-work/messages"}),
    ("read_record_field", {"id": "pdpp://record/e30"}),
    ("read_record_field", {"id": "messages:.."}),
    ("read_record_field", {"id": "mail-work/messages:m1", "connection_id": "mail-home"}),
    ("read_record_field", {"id": "messages:m1", "connection_id": "mail-home"}),
    ("read_record_field", {"id": "messages:m1"}),
    ("read_record_field", {"id": "messages:m1", "match": 2}),
    ("read_record_field", {"id": "messages:m1", "field_path": "body", "match": 2}),
    ("read_record_field", {"id": "messages:m1", "field_path": "nope"}),
    ("read_record_field", {"id": "messages:nope", "field_path": "body"}),
    ("fetch", {"id": "messages:m1", "fields": ["nope"]}),
    ("fetch", {"id": "messages:nope", "expand": ["nope"]}),
    ("schema", {"detail": "full", "connection_id": "nope"}),
    ("schema", {"detail": "full", "stream": "messages", "fields_after": "nope"}),
    ("query_records", {**MAIL, "sort": "size", "fields": ["nope"]}),
    ("query_records", {**MAIL, "sort": "size", "filter": {"nope": 1}}),
    ("query_records", {**MAIL, "sort": "size", "cursor": "x"}),
    ("query_records", {**MAIL, "sort": "size", "changes_since": "x"}),
    (
        "query_records",
        {
            **MAIL,
            "expand": ["attachments"],
            "expand_limit": {"attachments": 6},
            "filter": {"nope": 1},
        },
    ),
    (
        "fetch",
        {
            "id": "messages:m1",
            "expand": ["attachments"],
            "expand_limit": {"attachments": 6},
        },
    ),
    ("aggregate", {"stream": "messages", "metric": "sum", "field": "amount"}),
    ("query_records", {"stream": "messages", "filter": {"amount": 1}, "limit": 3}),
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Local:
    built = worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("dead-ends"))
    return Local(built.app, built.grant()[1])


@pytest.mark.parametrize(
    ("tool", "args"),
    [*((bad.tool, bad.args) for bad in CASES.values()), *TWICE_WRONG],
    ids=[*CASES, *(str(args) for _, args in TWICE_WRONG)],
)
def test_a_call_that_an_error_prints_works_or_says_that_nothing_is_there(
    house: Local, tool: str, args: dict[str, Any]
) -> None:
    refused = house.fails(tool, **args)
    calls = printed_calls(refused.text)
    assert {call.key() for call in calls} == {
        call.key() for call in structured_calls(refused.structured)
    }
    for call in calls:
        answer = house.call(call.tool, **call.args)
        if answer.failed:  # the call is right; what it asks for is not there, or in several places
            assert answer.error["code"] in NOT_THERE, f"{call}\n{answer.text}"
            assert answer.error["code"] != refused.error["code"]


def test_some_errors_do_print_calls(house: Local) -> None:
    printing = [
        name for name, bad in CASES.items() if printed_calls(house.fails(bad.tool, **bad.args).text)
    ]
    assert {"no path", "full without stream", "id ambiguous", "sort undeclared"} <= {*printing}
