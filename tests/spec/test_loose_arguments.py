"""Arguments as clients really send them: what has one clear meaning is understood, no more."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.operations import OPERATIONS
from service.operations.arguments import ADDED_BY_HOSTS
from service.operations.papers import PAPER_OPERATIONS
from tests.helpers.caller import Answer, Caller, Local
from tests.helpers.papers import DEEP_LEARNING, Library

ROOT = Path(__file__).parents[2]
MAIL = {"stream": "messages", "connection_id": "mail-work"}
#: Calls with arguments of each type, on both surfaces.
RECORDS: dict[str, dict[str, Any]] = {
    "schema": {"stream": "messages"},
    "query_records": {
        **MAIL,
        "limit": 2,
        "fields": ["id", "subject"],
        "filter": {"size": {"gte": 1}},
        "expand": ["attachments"],
        "expand_limit": {"attachments": 1},
    },
    "aggregate": {**MAIL, "metric": "count", "group_by": "folder", "limit": 3},
    "search": {"query": "lantern", "streams": ["messages"], "limit": 4},
    "fetch": {"id": "mail-work/messages:m_001", "fields": ["subject"]},
    "read_record_field": {
        "id": "mail-work/messages:m_long",
        "field_path": "body",
        "offset_chars": 20,
        "limit_chars": 50,
    },
}
PAPERS: dict[str, dict[str, Any]] = {
    "search_papers": {"query": "learning", "page_size": 2, "page": 2},
    "search_papers_by_keyword": {"keyword": "learning", "limit": 3, "offset": 0},
    "get_paper_metadata": {"paper_id": DEEP_LEARNING},
    "get_paper_summary": {"paper_id": DEEP_LEARNING, "max_chars": 90},
    "get_paper_source": {"paper_id": DEEP_LEARNING, "outline": True, "offset_chars": 0},
    "list_top_facets": {"category": "keyword", "limit": 5},
}


def as_text(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments with everything that is not text as JSON text."""
    return {n: one if isinstance(one, str) else json.dumps(one) for n, one in args.items()}


@pytest.mark.parametrize("tool", [*RECORDS, *PAPERS])
def test_text_blanks_and_additions_of_hosts_change_no_answer(
    small: Local, library: Library, tool: str
) -> None:
    caller: Caller = small if tool in RECORDS else library
    args = (RECORDS | PAPERS)[tool]
    operation = next(op for op in (*OPERATIONS, *PAPER_OPERATIONS) if op.name == tool)
    others = [name for name in operation.arguments.fields if name not in args]
    expected = caller.ok(tool, **args)
    assert caller.ok(tool, **as_text(args)).blocks == expected.blocks
    for blank in ("", [], {}, None):
        assert caller.ok(tool, **args, **dict.fromkeys(others, blank)).blocks == expected.blocks
    added = dict.fromkeys(ADDED_BY_HOSTS, "anything") | {"random_string": ""}
    assert caller.ok(tool, **args, **added).blocks == expected.blocks


@pytest.mark.parametrize("sent", [json.dumps(MAIL), "{}", "", [], None, "[1]", "5", "x", 5, [1]])
def test_arguments_as_json_text_or_an_empty_list_are_understood(small: Local, sent: Any) -> None:
    tool = "query_records" if isinstance(sent, str) and "mail" in sent else "schema"
    answer = small.rpc("tools/call", {"name": tool, "arguments": sent})
    if sent in ("[1]", "5", "x", 5, [1]):
        assert answer["error"]["code"] == -32602
    else:
        args = MAIL if tool == "query_records" else {}
        assert answer["result"]["content"] == small.ok(tool, **args).blocks


@pytest.mark.parametrize(
    ("tool", "args", "says"),
    [
        ("query_records", {**MAIL, "limit": "101"}, "limit: Use a number from 1 to 100"),
        ("query_records", {**MAIL, "limit": "0"}, "limit: Use a number from 1 to 100"),
        ("query_records", {**MAIL, "limit": "٣"}, "limit: Use a whole number"),
        ("query_records", {**MAIL, "limit": " 3"}, "limit: Use a whole number"),
        ("query_records", {**MAIL, "limit": "true"}, "limit: Use a whole number"),
        ("query_records", {**MAIL, "fields": "id"}, "fields: Not a valid list"),
        ("query_records", {**MAIL, "fields": "id,subject"}, "fields: Not a valid list"),
        ("query_records", {**MAIL, "fields": '["id"'}, "fields: Not a valid list"),
        ("query_records", {**MAIL, "fields": "[1]"}, "fields: Not a valid string"),
        ("query_records", {**MAIL, "filter": '"x"'}, "filter: must be an object"),
        ("query_records", {**MAIL, "expand_limit": {"attachments": "2"}}, "numbers start at 1"),
        ("query_records", {**MAIL, "view": 5}, "view: Not a valid string"),
        ("query_records", {**MAIL, "filter": "[" * 100_000}, "filter: must be an object"),
        ("search", {"query": 5}, "query: Not a valid string"),
    ],
)
def test_text_without_one_clear_meaning_is_refused(
    small: Local, tool: str, args: dict[str, Any], says: str
) -> None:
    assert says in small.fails(tool, **args).error["message"]


def test_values_of_a_filter_are_never_converted(small: Local) -> None:
    for value in ("5", "true", '["a"]'):
        as_object = small.call("query_records", **MAIL, filter={"folder": value})
        text = small.call("query_records", **MAIL, filter=json.dumps({"folder": value}))
        assert as_object.blocks == text.blocks


def test_names_that_callers_of_pdpp_tools_send_are_understood(small: Local) -> None:
    by_id = small.ok("fetch", id="mail-work/messages:m_001")
    parts = {"stream": "messages", "record_id": "m_001", "connection_id": "mail-work"}
    assert small.ok("fetch", **parts).blocks == by_id.blocks
    assert small.ok("fetch", **parts, id="").blocks == by_id.blocks
    assert small.ok("search", q="lantern").blocks == small.ok("search", query="lantern").blocks
    assert (
        small.ok("search", q="lantern", query="").blocks == small.ok("search", q="lantern").blocks
    )
    newest = small.ok("query_records", **MAIL, sort="-received_at")
    assert small.ok("query_records", **MAIL, order="desc", sort="").blocks == newest.blocks


def test_a_model_that_has_to_write_every_argument_can_call_every_tool(
    small: Local, library: Library
) -> None:
    """As in OpenAI's strict mode: an argument without a use gets an empty or a neutral value."""
    field = {"id": "mail-work/messages:m_long", "field_path": "body", "limit_chars": 900}
    idle = {"connection_id": "", "match": 1, "before_chars": 0, "after_chars": 0}
    by_offset = small.ok("read_record_field", **field, offset_chars=7).blocks
    assert (
        small.ok("read_record_field", **field, offset_chars=7, query="", **idle).blocks == by_offset
    )
    at_start = small.ok("read_record_field", **field, query="invoice", **idle, offset_chars=0)
    assert at_start.structured["window"]["match"] == 1
    paging = {"limit": 5, "page_size": 5, "offset": 5, "page": 2, "cursor": ""}
    second = library.ok("search_papers", query="learning", limit=5, offset=5)
    assert library.ok("search_papers", query="learning", **paging).blocks == second.blocks
    assert library.fails("search_papers", query="learning", offset=5, page=1)


def complained(answer: Answer) -> str:
    message: str = answer.error["message"]
    assert message in answer.text and message.count(". ") == 0 and message.endswith(".")
    return message


def test_all_complaints_come_at_once_in_one_sentence(small: Local) -> None:
    answer = small.fails("query_records", streem="messages", limit=0, filters={}, nonsense=1)
    message = complained(answer)
    assert "'streem' (did you mean 'stream'?)" in message and "needs stream" not in message
    assert "'filters' (did you mean 'filter'?)" in message
    assert "'nonsense' (it accepts stream, " in message and "limit: Use a number" in message
    assert answer.error["did_you_mean"] == ["filter", "stream"]
    assert "aggregate needs stream and metric" in complained(small.fails("aggregate"))
    many = small.fails("schema", **{f"{'x' * 500}{n}": n for n in range(1_000)})
    assert len(many.text.encode()) < 8_192 and complained(many)


@given(
    st.dictionaries(
        st.sampled_from([*(name for op in OPERATIONS for name in op.arguments.fields)]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        )
        | st.sampled_from(["5", "true", '["id"]', '{"size": 1}', "", [], {}]),
        max_size=4,
    ),
    st.sampled_from(OPERATIONS),
)
def test_any_arguments_are_understood_as_their_normal_form(args: dict[str, Any], op: Any) -> None:
    """Normalizing twice changes nothing, and blanks or text never appear where a type is."""
    once = op.understood(args)
    assert op.understood(once) == once
    for name, value in once.items():
        if name in op.arguments.fields:
            assert value not in (None, "", [], {})


def test_the_page_for_hosts_lists_the_names_that_are_ignored() -> None:
    page = (ROOT / "docs" / "hosts-and-models.md").read_text(encoding="utf-8")
    assert ", ".join(f"`{name}`" for name in ADDED_BY_HOSTS) in " ".join(page.split())
    declared = {n for op in (*OPERATIONS, *PAPER_OPERATIONS) for n in op.arguments.fields}
    assert declared.isdisjoint(ADDED_BY_HOSTS)
