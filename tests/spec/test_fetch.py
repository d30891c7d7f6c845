"""A record as a document: five members, mirrored in text, bounded, and nothing not requested."""

from pathlib import Path

import orjson
import pytest

from tests.helpers.caller import Answer, Local
from tests.helpers.reading import printed_calls
from tests.helpers.small import LONG_BODY, LONG_ID
from tests.helpers.stores import build, client
from tests.helpers import small as small_world
from tests.spec.scenarios import scenario

MEMBERS = {"id", "title", "text", "url", "metadata"}
INVOICE = "mail-work/messages:m_002"


def mirror(answer: Answer) -> None:
    """Fails unless both channels are the same document and nothing else."""
    (block,) = answer.blocks
    assert block["type"] == "text"
    assert orjson.loads(block["text"]) == answer.structured
    assert set(answer.structured) == MEMBERS
    assert len(answer.text.encode()) <= 24_576


@scenario("004/fetch/five-members-mirrored")
def test_a_document_from_search_has_five_members_and_is_mirrored_in_text(small: Local) -> None:
    first, *_ = small.ok("search", query="invoice number").structured["results"]
    answer = small.ok("fetch", id=first["id"])
    mirror(answer)
    document = answer.structured
    assert document["id"] == first["id"] and document["title"] == first["title"]
    assert document["text"] == "Please pay the invoice number 4711 by Friday."
    metadata = document["metadata"]
    assert metadata["connection_id"] == "mail-work" and metadata["stream"] == "messages"
    assert metadata["record_id"] == "m_002" and metadata["connector_key"] == "gmail"
    assert metadata["untrusted"] is True
    assert not {"data", "provider_url", "request_id"} & {*document, *metadata}


def test_metadata_is_flat_so_that_strict_hosts_take_it(small: Local) -> None:
    for id, more in (
        (INVOICE, {}),
        (LONG_ID, {}),
        ("mail-work/messages:m_001", {"expand": ["attachments"]}),
    ):
        metadata = small.ok("fetch", id=id, **more).structured["metadata"]
        assert all(isinstance(value, (str, int, bool)) for value in metadata.values()), metadata


@scenario("004/fetch/projection-leaves-nothing", "003/materialization/projected-fetch-inline")
def test_a_projected_document_holds_nothing_of_other_fields(small: Local) -> None:
    answer = small.ok("fetch", id=INVOICE, fields=["subject", "folder"])
    mirror(answer)
    for other in ("Please pay", "Noor Haddad", "2026-04-03", "thread_id", "size"):
        assert other not in answer.text, other
    assert "Invoice 4711" in answer.text and "inbox" in answer.text
    assert answer.structured["id"] == INVOICE and "pdpp://" not in answer.text
    assert answer.structured["metadata"]["connection_id"] == "mail-work"


def test_a_projection_without_the_title_field_does_not_show_the_title(small: Local) -> None:
    answer = small.ok("fetch", id=INVOICE, fields=["folder"])
    assert "Invoice" not in answer.text
    assert answer.structured["title"] == "Work mail · messages"


def test_a_field_that_is_not_granted_is_refused(small: Local) -> None:
    error = small.fails("fetch", id=INVOICE, fields=["subject", "nothing"]).error
    assert error["code"] == "field_not_granted" and error["field"] == "nothing"


@scenario("001/tokens/text-alone-suffices")
def test_a_cut_document_says_so_and_its_next_read_goes_on_where_it_stopped(small: Local) -> None:
    answer = small.ok("fetch", id=LONG_ID)
    mirror(answer)
    document = answer.structured
    assert document["metadata"]["text_complete"] is False
    rebuilt = document["text"]
    calls = printed_calls(answer.text)
    while calls:
        window = small.ok(calls[0].tool, **calls[0].args)
        rebuilt += window.structured["window"]["text"]
        calls = [call for call in printed_calls(window.text) if call.why == "next"]
    assert rebuilt == LONG_BODY


@scenario("001/shared/declared-roles-only")
def test_fields_without_declared_roles_are_not_promoted_by_their_names(small: Local) -> None:
    document = small.ok("fetch", id="notes/diary:d3").structured
    assert document["title"] == "Notes · diary · 2026-03-03T20:00:00Z"
    assert orjson.loads(document["text"]) == {
        "id": "d3",
        "title": "Entry 3",
        "body": "Day 3: walked to the jetty.",
        "written_at": "2026-03-03T20:00:00Z",
    }


def test_related_records_are_ids_that_can_be_fetched(small: Local) -> None:
    metadata = small.ok("fetch", id="mail-work/messages:m_001", expand=["attachments"]).structured[
        "metadata"
    ]
    ids = metadata["expanded.attachments"].split()
    assert ids == ["mail-work/attachments:a%2F1.png", "mail-work/attachments:a%2F2.txt"]
    for id in ids:
        assert small.ok("fetch", id=id).structured["id"] == id


def test_a_record_too_broad_for_a_document_names_what_is_left_out(hostile: Local) -> None:
    answer = hostile.ok("fetch", id="broad/broad:b1")
    mirror(answer)
    metadata = answer.structured["metadata"]
    assert metadata["text_complete"] is False and metadata["incomplete_field_count"] > 100
    shown = orjson.loads(answer.structured["text"])
    assert len(shown) + metadata["incomplete_field_count"] == 301
    for call in printed_calls(answer.text):
        assert hostile.ok(call.tool, **call.args)


@pytest.mark.parametrize("id", ["mail-work/messages:nothing", "nowhere/messages:m_002"])
def test_what_is_not_there_and_what_is_not_granted_read_alike(small: Local, id: str) -> None:
    answer = small.fails("fetch", id=id)
    assert answer.error["code"] in ("not_found", "connection_not_found")
    assert answer.error["message"] in answer.text


def test_an_address_is_absolute_where_a_public_one_is_known_and_else_empty(
    small: Local, tmp_path: Path
) -> None:
    assert small.ok("fetch", id=INVOICE).structured["url"] == ""
    public = "https://rung.example"
    house = build(small_world.connections(), tmp_path, RUNG_PUBLIC_URL=public)
    url = client(house).ok("fetch", id=INVOICE).structured["url"]
    assert url == f"{public}/v1/streams/messages/records/m_002?connection_id=mail-work"
