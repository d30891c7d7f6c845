"""Discovery: an index that names everything, details of one stream, and nothing unbounded."""

from typing import Any

import orjson
import pytest

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.operations.records import SCHEMA
from service.operations.base import Session
from tests.helpers.caller import Local
from tests.helpers.reading import named, printed_calls
from tests.helpers.stores import TEXT, Connection, Stream, build, client
from tests.spec.scenarios import scenario


@scenario("004/schema/index-names-every-stream")
def test_the_index_names_every_connection_and_stream_and_the_next_call(small: Local) -> None:
    answer = small.ok("schema")
    for name in ("mail-work", "mail-home", "notes", "messages", "attachments", "diary"):
        assert name in answer.text
    assert "field_capabilities" not in orjson.dumps(answer.structured).decode()
    (call,) = printed_calls(answer.text)
    assert call.tool == "schema" and small.ok("schema", **call.args)


@scenario("004/schema/index-names-every-stream")
def test_an_index_of_500_streams_still_names_each_inside_its_budget(tmp_path: Any) -> None:
    names = [f"a_rather_long_stream_name_of_this_owner_{number:03}" for number in range(125)]
    connections = [
        Connection(
            f"connection-{c}",
            [Stream(f"{name}_{c}", {"text": TEXT}, []) for name in names],
            f"connector-{c}",
            f"Connection {c}",
        )
        for c in range(4)
    ]
    answer = client(build(connections, tmp_path)).ok("schema")
    assert len(answer.text.encode()) <= BUDGETS.schema_bytes
    assert len(orjson.dumps(answer.structured)) <= BUDGETS.schema_bytes
    listed = {word for line in answer.lines for word in line.split()}
    in_data = {row["name"] for rows in named(answer.structured, "streams") for row in rows}
    for name in names:
        for c in range(4):
            assert f"{name}_{c}" in listed and f"{name}_{c}" in in_data


@scenario("004/schema/shared-stream-row-by-row")
def test_a_stream_of_several_connectors_has_a_row_for_each(demo: Local) -> None:
    answer = demo.ok("schema", stream="messages")
    assert "rows=2" in answer.lines[0]
    assert "connector_key=gmail" in answer.text and "connector_key=slack" in answer.text
    aggregates = [line for line in answer.lines if line.startswith("  aggregate: ")]
    assert len(aggregates) == 2 and "sum: size" in aggregates[0] and "reactions" in aggregates[1]
    assert len(answer.structured["data"]["connectors"]) == 2


@scenario("004/schema/one-connection-in-full")
def test_one_connection_shows_all_that_can_be_asked_of_its_stream(small: Local) -> None:
    answer = small.ok("schema", stream="messages", connection_id="mail-work")
    for told in (
        'connection_id: mail-work="Work mail"',
        "connector_key=gmail",
        'stream messages label="Mail messages"',
        "subject t=text role=primary-title",
        "projection: fields=",
        "sort: -received_at",
        'count="exact"',
        "expand: attachments",
        "search: full text in subject, body",
        "aggregate: count",
        "views: basic",
        "changes_since=",
    ):
        assert told in answer.text, told
    assert "mail-home" not in answer.text
    (connector,) = answer.structured["data"]["connectors"]
    assert [c["connection_id"] for c in connector["granted_connections"]] == ["mail-work"]


@scenario("004/schema/legend")
def test_flags_come_with_a_legend_and_examples_that_work(small: Local) -> None:
    answer = small.ok("schema", stream="messages", connection_id="mail-work")
    legend = next(line for line in answer.lines if line.startswith("legend: "))
    for flag in ("t=", "role=", "eq=", "r=", "lex=", "a="):
        assert f" {flag}" in legend
    calls = printed_calls(answer.text)
    assert {call.tool for call in calls} == {"query_records", "aggregate", "search"}
    for call in calls:
        small.ok(call.tool, **call.args)


@scenario("004/schema/legend")
def test_text_alone_is_enough_to_build_calls_that_work(small: Local) -> None:
    """Every flag of a field permits the corresponding call."""
    text = small.ok("schema", stream="messages", connection_id="mail-work").text
    base = {"stream": "messages", "connection_id": "mail-work"}
    flags = {
        line.split()[0]: line.split()[1:] for line in text.split("\n") if line.startswith("    ")
    }
    assert len(flags) == 8
    for name, found in flags.items():
        small.ok("query_records", **base, fields=[name], limit=1)
        if "eq" in found:
            small.ok("query_records", **base, filter={name: "x"})
        for kind in next((f[2:].split("|") for f in found if f.startswith("a=")), []):
            if kind.startswith("group_by"):
                more = {"granularity": "month"} if kind == "group_by_time" else {}
                small.ok("aggregate", **base, metric="count", **{kind: name}, **more)
            else:
                small.ok("aggregate", **base, metric=kind, field=name)


class Untouched:
    """A resource server that must not be asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked")


@scenario("004/schema/full-needs-a-stream")
def test_full_detail_without_a_stream_is_refused_before_anything_is_read() -> None:
    session = Session(Untouched())  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match='schema.stream, connection_id, detail: "full"'):
        SCHEMA.answer(session, {"detail": "full"})


@scenario("004/schema/full-is-scoped")
def test_full_detail_of_a_shared_stream_asks_for_a_connection(demo: Local) -> None:
    answer = demo.fails("schema", stream="messages", detail="full")
    assert answer.error["code"] == "ambiguous_schema_detail"
    assert answer.error["retry_with"] == "connection_id"
    for entry in answer.error["available_connections"]:
        assert f"connection_id={entry['connection_id']}" in answer.text
        demo.ok("schema", stream="messages", detail="full", connection_id=entry["connection_id"])


@scenario("004/schema/full-is-scoped")
def test_full_detail_is_one_document_with_nothing_twice(small: Local) -> None:
    answer = small.ok("schema", stream="messages", detail="full", connection_id="mail-work")
    data = answer.structured["data"]
    assert "data" not in data and "streams" not in data
    (connector,) = data["connectors"]
    (stream,) = connector["streams"]
    assert stream["name"] == "messages"
    assert stream["schema"]["properties"]["received_at"]["format"] == "date-time"
    assert '"format":"date-time"' in answer.text


def test_a_stream_of_many_fields_is_paged_and_no_field_is_lost(hostile: Local) -> None:
    args: dict[str, Any] | None = {"stream": "broad", "detail": "full"}
    seen: list[str] = []
    while args:
        answer = hostile.ok("schema", **args)
        assert len(answer.text.encode()) <= BUDGETS.schema_bytes
        assert len(orjson.dumps(answer.structured)) <= BUDGETS.structured_bytes
        lines = [line.split()[0] for line in answer.lines if line.startswith("    ")]
        seen += lines
        args = next((c.args for c in printed_calls(answer.text) if c.why == "more_fields"), None)
    assert len(seen) == len(set(seen)) == 301


def test_a_grant_of_nothing_says_what_to_do(small_house: Any) -> None:
    one = client(small_house, {"connection_id": "notes", "stream": "diary", "fields": ["id"]})
    assert "diary" in one.ok("schema").text
    assert "messages" not in one.ok("schema").text


def test_a_wrong_name_is_answered_with_the_nearest_granted_one(small: Local) -> None:
    answer = small.fails("schema", stream="mesages")
    assert answer.error["code"] == "grant_stream_not_allowed"
    assert "did_you_mean: messages" in answer.text


def test_a_cursor_that_no_index_printed_is_refused(small: Any) -> None:
    answer = small.fails("schema", cursor="mail/nothing")
    assert answer.error["code"] == "invalid_cursor"
