"""Everything cut can be continued: windows by offset and by match, every form of a handle."""

import pytest

from evidence import handles
from evidence.handles import RecordRef, field_window_uri
from tests.helpers.caller import Local
from tests.helpers.reading import fenced, named, printed_calls
from tests.helpers.small import FILLER, LONG_BODY, LONG_ID
from tests.helpers.uris import record_uri
from tests.spec.scenarios import scenario

LONG = RecordRef("messages", "m_long", "mail-work")
SMALL = RecordRef("notes", "accents", "notes")


@scenario("000/handles/windows-come-with-calls", "003/continuations/without-resources")
def test_a_window_shows_offsets_match_and_the_calls_of_its_neighbours(small: Local) -> None:
    answer = small.ok(
        "read_record_field",
        id=LONG_ID,
        field_path="body",
        query="invoice number",
        before_chars=50,
        after_chars=50,
    )
    window = answer.structured["window"]
    start, end = window["start_chars"], window["end_chars"]
    assert LONG_BODY[start:end] == window["text"] == fenced(answer.text)[0]
    match = LONG_BODY[window["match_start_chars"] : window["match_end_chars"]]
    assert match == "invoice number"
    assert f"chars={start}..{end} of={len(LONG_BODY)} complete=false" in answer.lines[0]
    assert f"match={window['match_start_chars']}..{window['match_end_chars']}" in answer.lines[0]
    calls = {call.why: call.args for call in printed_calls(answer.text)}
    assert list(calls) == ["next", "previous", "end"]
    assert calls["next"]["offset_chars"] == end
    assert calls["previous"]["offset_chars"] + calls["previous"]["limit_chars"] == start
    for why, args in calls.items():
        assert answer.structured[why]["args"] == args
        assert small.ok("read_record_field", **args).structured["window"]["text"]
    assert "pdpp://" not in answer.text and "pdpp://" not in str(answer.structured)


@scenario("001/tokens/omissions-are-callable")
def test_following_next_from_the_start_rebuilds_the_field_to_the_character(small: Local) -> None:
    args = {"id": LONG_ID, "field_path": "body"}
    rebuilt = ""
    while args:
        answer = small.ok("read_record_field", **args)
        rebuilt += answer.structured["window"]["text"]
        args = answer.structured.get("next", {}).get("args")
    assert rebuilt == LONG_BODY


def test_following_previous_from_the_end_rebuilds_the_field_too(small: Local) -> None:
    first = small.ok("read_record_field", id=LONG_ID, field_path="body")
    args = first.structured["end"]["args"]
    rebuilt = ""
    while args:
        answer = small.ok("read_record_field", **args)
        rebuilt = answer.structured["window"]["text"] + rebuilt
        args = answer.structured.get("previous", {}).get("args")
    assert rebuilt == LONG_BODY


def test_next_match_walks_every_occurrence_and_then_stops(small: Local) -> None:
    beds = {"id": "notes/notes:windows", "field_path": "text"}
    args = {**beds, "query": "Lorem ipsum dolor", "limit_chars": 40}
    starts = []
    while args and len(starts) < 50:
        answer = small.ok("read_record_field", **args)
        starts.append(answer.structured["window"]["match_start_chars"])
        args = answer.structured.get("next_match", {}).get("args")
    assert len(starts) == 18
    assert starts == sorted(set(starts))


def test_a_query_finds_without_case_and_accents_and_says_stored_offsets(small: Local) -> None:
    window = small.ok(
        "read_record_field", id="notes/notes:accents", field_path="text", query="STRASSE"
    ).structured["window"]
    text = "Das Café in der Straße führt Crème brûlée."
    assert text[window["match_start_chars"] : window["match_end_chars"]] == "Straße"


def test_words_that_are_apart_are_found_by_their_tightest_span(small: Local) -> None:
    window = small.ok(
        "read_record_field", id="notes/notes:phrase", field_path="text", query="control flow"
    ).structured["window"]
    text = f"control of flow. {FILLER}flow control works."
    found = text[window["match_start_chars"] : window["match_end_chars"]]
    assert found == "flow control"


def test_a_query_that_is_not_there_is_an_error_that_says_how_to_go_on(small: Local) -> None:
    answer = small.fails("read_record_field", id=LONG_ID, field_path="body", query="zebra")
    assert answer.error["code"] == "query_not_found"
    assert answer.error["message"] in answer.text


@pytest.mark.parametrize("offset", [len(LONG_BODY), len(LONG_BODY) + 1, 10_000_000])
def test_an_offset_past_the_end_gives_an_empty_window_and_the_way_back(
    small: Local, offset: int
) -> None:
    answer = small.call("read_record_field", id=LONG_ID, field_path="body", offset_chars=offset)
    assert str(len(LONG_BODY)) in answer.text
    for call in printed_calls(answer.text):
        small.ok(call.tool, **call.args)
    if not answer.failed:
        assert printed_calls(answer.text), "a window past the end leads back"


@scenario("000/handles/record-uri-works", "003/order/uris-are-taken")
@pytest.mark.parametrize(
    "uri", [record_uri(SMALL), "pdpp://record/notes/notes:accents", "notes/notes:accents"]
)
def test_every_spelling_of_a_record_means_the_same_record(small: Local, uri: str) -> None:
    document = small.ok("fetch", id="notes/notes:accents")
    assert small.ok("fetch", id=uri).text == document.text
    window = small.ok("read_record_field", id=uri, field_path="text")
    assert window.structured["record"]["id"] == "notes/notes:accents"
    assert fenced(window.text) == [document.structured["text"]]
    if uri.startswith("pdpp://"):
        assert small.read(uri) == document.text


@scenario("000/handles/field-window-uri-works")
@scenario("003/materialization/no-links-for-windows", "003/continuations/resource-equals-tool")
def test_the_hidden_uri_of_a_window_reads_as_the_same_window(small: Local) -> None:
    answer = small.ok(
        "read_record_field", id=LONG_ID, field_path="body", offset_chars=900, limit_chars=300
    )
    (uri,) = named({"meta": answer.meta}, "rung/resource")
    assert uri.startswith("pdpp://field-window/")
    assert small.read(uri) == answer.text
    assert small.ok("read_record_field", id=uri).text == answer.text
    assert all(block["type"] == "text" for block in answer.blocks)
    assert "pdpp://" not in answer.text and "pdpp://" not in str(answer.structured)


@scenario("001/links/tools-reach-what-uris-name")
def test_what_a_uri_names_is_reached_by_the_ids_of_its_own_text(small: Local) -> None:
    uri = field_window_uri(LONG, "body", offset_chars=0, limit_chars=100)
    text = small.read(uri)
    next_call, end_call = printed_calls(text)
    assert next_call.args["id"] == end_call.args["id"] == LONG_ID
    assert small.ok("fetch", id=next_call.args["id"]).structured["id"] == LONG_ID


def test_a_window_uri_may_carry_a_query_in_either_spelling(small: Local) -> None:
    plain = "pdpp://field-window/mail-work/messages:m_long?field_path=body&q=invoice%20number"
    sealed = field_window_uri(LONG, "body", q="invoice number")
    for uri in (plain, sealed):
        window = small.ok("read_record_field", id=uri).structured["window"]
        assert window["match_start_chars"] == LONG_BODY.index("invoice number")


@pytest.mark.parametrize("id", ["", "x", ":", "a/b", "messages:", "a/messages:\0", "a/..:b"])
def test_what_is_not_an_id_is_refused_with_the_form_of_one(small: Local, id: str) -> None:
    for tool, more in (("fetch", {}), ("read_record_field", {"field_path": "text"})):
        error = small.fails(tool, id=id, **more).error
        assert error["code"] == "invalid_request" and error["param"] == "id"


def test_an_id_and_an_argument_that_disagree_are_refused(small: Local) -> None:
    error = small.fails("fetch", id=LONG_ID, connection_id="mail-home").error
    assert error["code"] == "conflicting_connection_id"


def test_an_id_without_connection_works_where_only_one_can_be_meant(small: Local) -> None:
    assert small.ok("fetch", id="notes:accents").structured["id"] == "notes/notes:accents"
    found = small.ok("fetch", id="messages:m_001", connection_id="mail-home")
    assert found.structured["id"] == "mail-home/messages:m_001"
    assert str(handles.parse(found.structured["id"])) == found.structured["id"]


def test_a_find_shows_what_stands_before_the_match_unless_told(small: Local) -> None:
    args = {"id": LONG_ID, "field_path": "body", "query": "4711 is due"}
    place = LONG_BODY.index(args["query"])

    def window(**more: object) -> dict[str, object]:
        found: dict[str, object] = small.ok("read_record_field", **args, **more).structured[
            "window"
        ]
        start, end = found["start_chars"], found["end_chars"]
        assert found["text"] == LONG_BODY[start:end] and found["match_start_chars"] == place
        return found

    unasked = window()
    assert (unasked["start_chars"], unasked["end_chars"]) == (place - 200, place - 200 + 4_096)
    after = window(after_chars=30)
    assert (after["start_chars"], after["end_chars"]) == (place - 200, place + 11 + 30)
    assert window(before_chars=0)["start_chars"] == place
    assert window(before_chars=0, after_chars=5)["end_chars"] == place + 16
    for size in (1, 11, 12, 60, 5_000):
        small_one = window(limit_chars=size)
        assert small_one["end_chars"] - small_one["start_chars"] == size
        if size >= len(args["query"]):
            assert args["query"] in small_one["text"]


def test_rest_begins_at_the_match_as_pdpp_does(small: Local) -> None:
    where = "/v1/streams/messages/records/m_long/field-window"
    body = small.get(f"{where}?connection_id=mail-work&field=body&q=4711+is+due")
    assert body["window"]["text"].startswith("4711 is due")
    assert body["window"]["limit_chars"] == 4_096
