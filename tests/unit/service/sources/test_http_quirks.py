"""Quirks of servers put right, and what they refuse told with what works instead."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evidence.errors import InvalidRequest
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.records import RecordPage
from evidence.values import Binary, Preview
from evidence.work import Deadline
from service.sources.remote.server import HttpResourceServer
from service.sources.remote.origin import Origin
from service.ports import (
    AggregateQuery,
    Answer,
    RecordQuery,
    RecordRead,
    ResourceServer,
    SchemaQuery,
    SearchQuery,
    WindowRequest,
)
from tests.helpers.loopback import Asked, Reply, answering, as_json
from tests.helpers.replay import recorded, replaying
from tests.helpers.scripted import LIST, Ask, Scripted


@pytest.fixture
def world() -> Iterator[Scripted]:
    with answering(lambda asked: as_json(LIST)) as server:
        yield Scripted(server)


@pytest.fixture(scope="module")
def reference() -> Iterator[Callable[[], HttpResourceServer]]:
    with replaying() as server:
        origin = Origin(server.url)
        yield lambda: HttpResourceServer(origin, "full", Deadline.after(15))


REF = RecordRef("messages", "m_emoji", "cin_demo_work")


def listed(rs: ResourceServer) -> Answer[RecordPage]:
    return rs.records(RecordQuery("messages"))


def test_a_server_without_compact_schemas_gives_the_whole_one(world: Scripted) -> None:
    full = recorded("schema_full")["body"]
    for first in (
        as_json({"error": {"code": "unsupported_query", "message": "No view."}}, 400),
        as_json({"data": {}}),
    ):
        world.gives(first, as_json(full))
        assert world.open().schema(SchemaQuery()).body == full
    assert world.targets == ["/v1/schema?view=compact", "/v1/schema"] * 2


def test_a_schema_that_tells_nothing_says_what_works(
    reference: Callable[[], HttpResourceServer],
) -> None:
    for detail in ("compact", "full"):
        query = SchemaQuery("messages", "cin_demo_work", detail)
        if detail == "compact":
            query = SchemaQuery("messages")
        warnings = reference().schema(query).value.warnings
        assert [one["code"] for one in warnings] == ["compatibility_fallback"]
        assert "filter" in warnings[0]["message"] and "search" in warnings[0]["message"]
    assert reference().schema(SchemaQuery()).value.warnings == []


def test_a_schema_that_tells_something_says_nothing_more(world: Scripted) -> None:
    world.gives(as_json(recorded("schema_compact_owner")["body"]))
    assert world.open().schema(SchemaQuery("messages")).value.warnings == []


def test_a_list_over_several_connections_shows_some_of_each_and_says_how_to_go_on(
    reference: Callable[[], HttpResourceServer],
) -> None:
    body = reference().records(RecordQuery("messages", limit=2)).body or {}
    assert len(recorded("records_limit2")["body"]["data"]) == 4
    assert [row["connection_id"] for row in body["data"]] == ["cin_demo_personal", "cin_demo_work"]
    assert body["has_more"] and "next_cursor" not in body
    (warning,) = body["meta"]["warnings"]
    assert warning["code"] == "partial_results"
    assert "cin_demo_personal, cin_demo_work" in warning["message"]


def test_windows_go_on_where_their_text_ends(reference: Callable[[], HttpResourceServer]) -> None:
    query = WindowRequest(limit_chars=5)
    answer = reference().field_window(REF, "body", query)
    body, read = answer.body or {}, answer.value
    assert recorded("fw_emoji")["body"]["window"]["next_offset_chars"] == 10
    assert body["window"]["text"] == "😀" * 5
    assert body["window"]["end_chars"] == body["window"]["next_offset_chars"] == 5
    assert (read.end, read.continuations()[0].args["offset_chars"]) == (5, 5)


def test_a_match_that_was_counted_in_utf_16_ends_where_it_ends(world: Scripted) -> None:
    window = {"text": "ab😀cd", "start_chars": 0, "end_chars": 6, "total_chars": 5}
    window |= {"match_start_chars": 2, "match_end_chars": 4}
    world.gives(as_json({"window": window}))
    read = world.open().field_window(REF, "body", WindowRequest(query="😀")).value
    assert read.match_end == 3 and read.complete
    right = {**window, "end_chars": 5}
    world.gives(as_json({"window": right}))
    read = world.open().field_window(REF, "body", WindowRequest(query="😀")).value
    assert read.match_end == 4


def test_a_further_match_that_was_not_looked_for_is_no_answer(world: Scripted) -> None:
    window = {"text": "ab", "start_chars": 0, "match_start_chars": 0, "match_end_chars": 1}
    world.gives(as_json({"window": window}))
    error = world.refused(lambda rs: rs.field_window(REF, "f", WindowRequest(query="a", match=2)))
    assert error.details["param"] == "match"
    assert error.calls[0].args["offset_chars"] == 1


def test_a_search_that_cannot_go_on_says_so(world: Scripted) -> None:
    world.gives(as_json(recorded("hybrid")["body"]))
    page = world.open().search(SearchQuery("invoice", limit=2)).value
    assert page.has_more and page.next_cursor is None and page.counts is None
    assert [one["code"] for one in page.warnings] == ["partial_results"]


def test_a_server_says_nothing_of_words_that_were_not_asked_for(world: Scripted) -> None:
    hit = {"stream": "s", "record_key": "r", "matched_words": ["elm", "obey"]}
    for query, retry in (("obey", None), ("elm", "elm"), ("eln", "eln"), ("elm obey", None)):
        meta = {
            "absent_words": ["elm", "", 7, "obey"],
            "nearest_words": {"oak": ["eln", "do as I say"], "obey": ["oak"]},
            "warnings": [{"code": "no_hits", "detail": {"retry_arguments": {"q": query}}}],
        }
        forms = {"elm": "elms", "oak": "obey all of it", "obey": "oak"}
        world.gives(as_json({"data": [{**hit, "forms": forms}], "meta": meta}))
        page = world.open().search(SearchQuery("elm oak")).value
        assert (page.absent_words, page.nearest_words) == (["elm"], {"oak": ["eln"]})
        assert page.retry == ({"query": retry} if retry else None)
        assert page.hits[0].matched_words == ["elm"] and page.hits[0].forms == {"elm": "elms"}


@pytest.mark.parametrize(
    "ask, hint, first",
    [
        (
            lambda rs: rs.records(RecordQuery("messages", filter={"folder": "inbox"})),
            "filter",
            ("search", {"query": "inbox", "streams": ["messages"]}),
        ),
        (
            lambda rs: rs.records(RecordQuery("threads", expand=("messages",))),
            "related",
            ("query_records", {"stream": "threads"}),
        ),
        (
            lambda rs: rs.records(RecordQuery("messages", view="basic")),
            "fields",
            ("schema", {"stream": "messages"}),
        ),
        (
            lambda rs: rs.search(
                SearchQuery("invoice", streams=("messages",), filter={"folder": "inbox"}, limit=25)
            ),
            "filter",
            None,
        ),
        (
            lambda rs: rs.aggregate(
                AggregateQuery("messages", "count", filter={"folder": "inbox"})
            ),
            "filter",
            None,
        ),
    ],
)
def test_what_clients_may_not_ask_comes_with_what_works(
    reference: Callable[[], HttpResourceServer], ask: Ask, hint: str, first: Any
) -> None:
    with pytest.raises(InvalidRequest) as raised:
        ask(reference())
    assert raised.value.code == "invalid_request" and hint in str(raised.value.hint)
    if first is not None:
        assert (raised.value.calls[0].operation, raised.value.calls[0].args) == first


NESTED = {"to": [{"name": "Ada"}], "size": 7}


def windowless(asked: Asked) -> Reply:
    """As the reference: windows of text only, and no pointers."""
    if "field-window" not in asked.target:
        return as_json({"id": "m", "stream": "s", "connection_id": "c", "data": {"h": NESTED}})
    code, status = ("field_not_granted", 403) if "%2F" in asked.target else ("field_not_text", 422)
    return as_json({"error": {"code": code, "message": "No."}}, status)


@pytest.mark.parametrize(
    "path, kind, text",
    [
        ("h", "object", '{"size":7,"to":[{"name":"Ada"}]}'),
        ("/h/size", "integer", "7"),
        ("/h/to/0/name", "string", "Ada"),
    ],
)
def test_values_that_are_no_text_are_read_all_the_same(
    world: Scripted, path: str, kind: str, text: str
) -> None:
    world.server.answer = windowless
    ref = RecordRef("s", "m", "c")
    read = world.open().field_window(ref, path, WindowRequest(limit_chars=5)).value
    assert (read.type, read.text, read.total) == (kind, text[:5], len(text))
    found = world.open().field_window(ref, path, WindowRequest(query=text[-3:])).value
    assert text[found.match_start : found.match_end] == text[-3:]
    error = world.refused(lambda rs: rs.field_window(ref, path, WindowRequest(query="zebra")))
    assert error.code == "query_not_found"


def test_a_value_that_is_not_there_is_not_found(world: Scripted) -> None:
    world.server.answer = windowless
    for path in ("/h/nobody", "/nobody/0"):
        error = world.refused(lambda rs: rs.field_window(REF, path, WindowRequest()))
        assert error.code == "field_not_found"


def test_a_field_outside_the_grant_keeps_its_refusal(world: Scripted) -> None:
    world.gives(as_json({"error": {"code": "field_not_granted", "message": "Not yours."}}, 403))
    error = world.refused(lambda rs: rs.field_window(REF, "/h/0", WindowRequest()))
    assert (error.code, error.message) == ("field_not_granted", "Not yours.")


@pytest.mark.parametrize(
    "value",
    [{"blob_id": "b", "mime_type": "image/png"}, base64.b64encode(bytes(range(256)) * 4).decode()],
)
def test_binary_values_come_as_what_is_known_of_them(world: Scripted, value: Any) -> None:
    def answer(asked: Asked) -> Reply:
        return (
            as_json({"error": {"code": "field_not_text"}}, 422)
            if "field-window" in asked.target
            else as_json({"id": "m", "data": {"file": value}})
        )

    world.server.answer = answer
    read = world.open().field_window(REF, "file", WindowRequest()).value
    assert read.type == "binary" and not read.text and isinstance(read.binary, Binary)


def test_large_values_of_a_record_come_as_previews_unless_whole(world: Scripted) -> None:
    data = {"text": "ü" * 40_000, "rows": [{"b": 1, "a": 2}] * 9_999, "small": "x", "n": 1}
    world.gives(as_json({"id": "m", "data": data}))
    shown = world.open().record(REF).value.data
    assert (shown["small"], shown["n"]) == ("x", 1)
    assert shown["text"] == Preview("ü" * BUDGETS.preview_chars, 40_000, "string", 80_000)
    assert shown["rows"].text.startswith('[{"a":2,"b":1}')
    assert world.open().record(REF, RecordRead(fields=("text",), whole=True)).value.data == data


def test_warnings_are_few_and_short(world: Scripted) -> None:
    told = [{"code": "c", "message": "m" * 9_999, "detail": {}, "odd": [1]}] * 99
    world.gives(as_json({**LIST, "meta": {"warnings": [*told, 7]}}))
    warnings = (listed(world.open()).body or {})["meta"]["warnings"]
    assert len(warnings) == 20
    assert len(warnings[0]["message"]) == BUDGETS.message_chars and "odd" not in warnings[0]


def test_recorded_blobs_are_read_whole_or_in_part(
    reference: Callable[[], HttpResourceServer],
) -> None:
    blob = reference().blob("blob_demo_1", connection_id="cin_demo_personal")
    assert (blob.media_type, blob.size_bytes) == ("application/pdf", 24)
    assert b"".join(blob.chunks(0, 24)) == b"%PDF-1.4 demo attachment"
    assert b"".join(blob.chunks(5, 8)) == b"1.4"
    assert b"".join(blob.chunks(3, 3)) == b""


def test_ranges_are_asked_for_and_honoured(world: Scripted) -> None:
    content = bytes(range(256)) * 4_096

    def answer(asked: Asked) -> Reply:
        told = asked.headers.get("range")
        if told is None:
            return Reply(200, b"", {"Content-Length": str(len(content)), "ETag": f'"{"a" * 64}"'})
        first, last = map(int, told.removeprefix("bytes=").split("-"))
        return Reply(206, content[first : last + 1])

    world.server.answer = answer
    blob = world.open().blob("b/1")
    assert blob.sha256 == "a" * 64 and blob.size_bytes == len(content)
    assert b"".join(blob.chunks(1_000, 500_000)) == content[1_000:500_000]
    assert world.targets[0] == "/v1/blobs/b%2F1"


def test_a_blob_that_is_not_there_says_so(world: Scripted) -> None:
    missing = {"error": {"code": "blob_not_found", "message": "Blob not found"}}
    world.gives(as_json(missing, 404))
    assert world.refused(lambda rs: rs.blob("x")).code == "blob_not_found"
