"""Resources give the same as the tools; nothing is available only as a resource."""

import orjson
import pytest

from evidence.handles import RecordRef, field_window_uri
from tests.helpers.caller import Local
from tests.helpers.stores import client
from tests.helpers.uris import record_uri, stream_uri
from tests.helpers.worlds import House
from tests.spec.scenarios import scenario

NOTE = RecordRef("notes", "accents", "notes")


def test_templates_are_listed_and_records_are_not(small: Local) -> None:
    assert small.result("resources/list")["resources"] == []
    templates = small.result("resources/templates/list")["resourceTemplates"]
    assert [template["uriTemplate"].partition("{")[0] for template in templates] == [
        "pdpp://record/",
        "pdpp://field-window/",
        "pdpp://stream/",
    ]


@scenario("003/order/uris-are-taken", "000/handles/record-uri-works")
def test_a_record_resource_is_the_fetched_document(small: Local) -> None:
    document = orjson.loads(small.read(record_uri(NOTE)))
    assert document == small.ok("fetch", id=str(NOTE)).structured


@scenario("003/continuations/resource-equals-tool")
@pytest.mark.parametrize(
    "window",
    [{}, {"offset_chars": 4, "limit_chars": 9}, {"query": "strasse"}, {"query": "in", "match": 1}],
)
def test_a_window_resource_is_what_the_tool_reads(small: Local, window: dict[str, object]) -> None:
    tool = small.ok("read_record_field", id=str(NOTE), field_path="text", **window)
    assert small.read(field_window_uri(NOTE, "text", **window)) == tool.text


def test_a_stream_resource_is_what_schema_says(small: Local) -> None:
    assert small.read(stream_uri("diary")) == small.ok("schema", stream="diary").text
    one = small.ok("schema", stream="messages", connection_id="mail-home")
    assert small.read(stream_uri("messages", "mail-home")) == one.text


@scenario("001/links/tools-reach-what-uris-name", "003/continuations/resource-equals-tool")
def test_resources_stay_inside_the_grant_as_the_tools_do(small_house: House) -> None:
    narrow = client(small_house, {"connection_id": "mail-home"})
    for uri in (record_uri(NOTE), field_window_uri(NOTE, "text"), stream_uri("notes")):
        error = narrow.rpc("resources/read", {"uri": uri})["error"]
        assert error["code"] == -32002 and error["data"]["uri"] == uri
        assert error["data"]["code"] in ("connection_not_found", "grant_stream_not_allowed")


@pytest.mark.parametrize(
    "uri", ["pdpp://record/", "pdpp://record/x", "pdpp://field-window/a/b:c", "file:///etc/passwd"]
)
def test_what_is_no_resource_is_an_error_with_the_uri_and_words_to_act_on(
    small: Local, uri: str
) -> None:
    error = small.rpc("resources/read", {"uri": uri})["error"]
    assert error["code"] == -32002 and error["data"]["uri"] == uri
    assert len(error["message"]) > 30


def test_no_model_visible_place_holds_a_uri(small: Local, demo: Local) -> None:
    for one, query in ((small, "invoice"), (demo, "harbour")):
        id = one.ok("search", query=query).structured["results"][0]["id"]
        for answer in (
            one.ok("search", query=query),
            one.ok("fetch", id=id),
            one.ok("query_records", stream="notes", limit=3),
            one.ok("schema"),
        ):
            assert "pdpp://" not in answer.text and "pdpp://" not in str(answer.structured)
            assert [block["type"] for block in answer.blocks] == ["text"]
