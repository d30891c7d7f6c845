"""Pages of records: projection, filters, sorting, counts, changes, and pages that end early."""

from typing import Any

import orjson
import pytest

from evidence.limits import CONTRACT
from tests.helpers.caller import Answer, Local
from tests.helpers.reading import fenced, printed_calls
from tests.helpers.stores import TEXT, TIME, Connection, Stream, bring, build, client
from tests.helpers.worlds import row
from tests.spec.scenarios import scenario

WORK = {"stream": "messages", "connection_id": "mail-work"}
IDENTITY = {"object", "id", "stream", "connection_id", "display_name", "emitted_at", "data"}


def ids(answer: Answer) -> list[str]:
    return [rung["id"] for rung in answer.structured["content_ladder"]["records"]]


def all_pages(small: Local, **args: Any) -> list[str]:
    """The ids of every page, following the printed calls."""
    found: list[str] = []
    given: dict[str, Any] | None = args
    while given:
        answer = small.ok("query_records", **given)
        assert len(answer.text.encode()) <= 24_576
        assert len(orjson.dumps(answer.structured)) <= 40_960
        found += ids(answer)
        given = next((c.args for c in printed_calls(answer.text) if c.why == "next_page"), None)
    return found


@scenario("001/tokens/text-alone-suffices")
def test_each_record_has_its_id_its_source_and_its_payload_in_text(small: Local) -> None:
    answer = small.ok("query_records", **WORK, limit=3)
    shown = [orjson.loads(text) for text in fenced(answer.text)]
    assert shown == [record["data"] for record in answer.structured["data"]["data"]]
    for number, id in enumerate(ids(answer), start=1):
        assert f"\n{number} {id} " in answer.text
        assert small.ok("fetch", id=id).structured["id"] == id
    assert answer.text.count('source="Work mail" (mail-work)') == 3


@scenario("004/fetch/projected-records")
def test_projected_records_hold_the_named_fields_and_declared_identity_only(small: Local) -> None:
    answer = small.ok("query_records", **WORK, fields=["subject"], limit=5)
    for record in answer.structured["data"]["data"]:
        assert set(record["data"]) == {"subject"}
        assert set(record) <= IDENTITY
    assert "Standup notes" not in answer.text and "Ada Brandt" not in answer.text
    told = small.ok("schema", **WORK).text
    assert "only those fields and id, stream, connection_id, display_name and emitted_at" in told


@scenario("004/schema/cursors-and-counts-in-text")
def test_cursor_count_and_bookmark_stand_in_text(small: Local) -> None:
    answer = small.ok("query_records", **WORK, limit=2, count="exact")
    data = answer.structured["data"]
    assert data["meta"]["count"] == {"kind": "exact", "value": 24}
    assert "count=exact:24" in answer.lines[0]
    assert f"next_cursor={data['next_cursor']}" in answer.lines[0]
    changes = small.ok("query_records", **WORK, changes_since="beginning", limit=2)
    bookmark = changes.structured["data"]["next_changes_since"]
    assert f"next_changes_since={bookmark}" in changes.lines[0]


@scenario("004/schema/cursors-and-counts-in-text")
def test_following_next_page_gives_every_record_once(small: Local) -> None:
    assert len(set(all_pages(small, stream="messages", limit=7))) == 26
    assert len(all_pages(small, stream="messages", limit=7)) == 26


def test_a_stream_of_several_connections_is_one_list_in_one_order(small: Local) -> None:
    answer = small.ok("query_records", stream="messages", sort="received_at", limit=6)
    times = [orjson.loads(text)["received_at"] for text in fenced(answer.text)]
    assert times == sorted(times)
    assert {id.partition("/")[0] for id in ids(answer)} == {"mail-home", "mail-work"}


@pytest.mark.parametrize(
    ("filter", "count"),
    [
        ({"folder": "inbox"}, 11),
        ({"sender": "Noor Haddad"}, 1),
        ({"received_at": {"gte": "2026-04-20T00:00:00Z"}}, 7),
        ({"received_at": {"gte": "2026-04-20T00:00:00Z", "lt": "2026-04-22T00:00:00Z"}}, 2),
        ({"folder": "archive", "size": {"gt": 1_000}}, 1),
        ({"folder": "nowhere"}, 0),
    ],
)
def test_a_typed_filter_keeps_what_it_says(
    small: Local, filter: dict[str, Any], count: int
) -> None:
    answer = small.ok("query_records", **WORK, filter=filter, count="exact", limit=1)
    assert answer.structured["data"]["meta"]["count"]["value"] == count
    if count == 0:
        assert "No records found" in answer.text


@pytest.mark.parametrize(
    "filter", ["folder=inbox", [1], "[1]", {"folder": {"like": "x"}}, {"a[b]": 1}]
)
def test_a_filter_of_another_form_is_refused_and_never_ignored(small: Local, filter: Any) -> None:
    answer = small.fails("query_records", **WORK, filter=filter)
    assert answer.error["code"] == "invalid_filter"
    assert answer.error["message"] in answer.text


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"filter": {"body": "x"}}, "invalid_filter"),
        ({"filter": {"subject": {"gte": "x"}}}, "invalid_filter"),
        ({"sort": "body"}, "invalid_sort"),
        ({"fields": ["secret"]}, "field_not_granted"),
        ({"view": "nothing"}, "invalid_request"),
        ({"expand": ["nothing"]}, "invalid_expand"),
        ({"cursor": "abc"}, "invalid_cursor"),
        ({"changes_since": "abc"}, "invalid_cursor"),
        ({"limit": CONTRACT.page_items + 1}, "invalid_request"),
        ({"limit": "5.0"}, "invalid_request"),
        ({"count": "maybe"}, "invalid_request"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(
    small: Local, more: dict[str, Any], code: str
) -> None:
    answer = small.fails("query_records", **WORK, **more)
    assert answer.error["code"] == code, answer.text
    assert answer.error["message"] in answer.text


def test_a_view_is_a_choice_of_fields(small: Local) -> None:
    answer = small.ok("query_records", **WORK, view="basic", limit=1)
    assert set(orjson.loads(fenced(answer.text)[0])) == {"id", "subject"}


def test_related_records_come_as_ids_that_can_be_fetched(small: Local) -> None:
    answer = small.ok("query_records", **WORK, filter={"id": "m_001"}, expand=["attachments"])
    (shown,) = [orjson.loads(text) for text in fenced(answer.text)]
    for id in shown["expanded"]["attachments"]["ids"]:
        assert small.ok("fetch", id=id).structured["id"] == id


@scenario("001/tokens/omissions-are-callable")
def test_a_page_too_large_ends_early_says_so_and_loses_nothing(hostile: Local) -> None:
    answer = hostile.ok("query_records", stream="broad", limit=12)
    assert answer.structured["data"]["ended_early"] is True
    assert "ended early" in answer.text
    assert len(all_pages(hostile, stream="broad", limit=12)) == 12
    for call in printed_calls(answer.text)[:10]:
        hostile.ok(call.tool, **call.args)


def test_changes_name_what_came_and_what_went_since_a_bookmark(tmp_path: Any) -> None:
    stream = Stream("tasks", {"text": TEXT, "at": TIME}, [{"id": "a", "text": "one"}], (), "at")
    house = build([Connection("todo", [stream], "todo")], tmp_path)
    one = client(house)
    first = one.ok("query_records", stream="tasks", changes_since="beginning")
    later = next(call for call in printed_calls(first.text) if call.why == "later_changes")
    assert one.ok(later.tool, **later.args).structured["data"]["data"] == []
    bring(house, "todo", row("tasks", "b", text="two"), row("tasks", "a")._replace(deleted=True))
    answer = one.ok(later.tool, **later.args)
    assert sorted(ids(answer)) == ["todo/tasks:a", "todo/tasks:b"]
    (gone,) = [line for line in answer.lines if line.endswith("deleted=true")]
    assert " todo/tasks:a " in gone
