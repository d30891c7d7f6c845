"""Search shows evidence first, small fields are inline, large ones need explicit reads."""

import re
from typing import Any

import pytest

from service.pdpp.decode import search as reading
from evidence.text import unmark
from renderers import search as renderer
from renderers.rendering import Context
from tests.helpers.caller import Local
from tests.helpers.reading import fenced, named, previews, printed_calls, structured_calls
from tests.helpers.small import LONG_BODY, LONG_ID
from tests.spec.scenarios import scenario

QUERIES = ("invoice", "copper key", "Möwen", "青い灯台", "🎉", '"washing machine"', "garden*")

READ_ANY = 'to read any field: read_record_field {"id":"<id of the hit>","field_path":"<field>"}'
UNPROVEN: dict[str, Any] = {
    "object": "search_result",
    "stream": "messages",
    "record_key": "m_1",
    "connection_id": "mail",
    "connector_key": "gmail",
    "display_name": "Mail",
    "matched_fields": ["body"],
    "snippet": {"field": "body", "text": "text of the body without a mark"},
    "evidence_excerpts": [],
}


@scenario("000/ladder/text-alone-shows-evidence", "003/search/proof-in-both-channels")
def test_a_proven_window_stands_in_text_in_results_and_in_the_ladder(small: Local) -> None:
    answer = small.ok("search", query="invoice number")
    shown = fenced(answer.text)
    results = answer.structured["results"]
    ladder = answer.structured["content_ladder"]["records"]
    assert len(shown) == 3 and len(results) == len(ladder) == 4
    for text, result, rung in zip(shown, results, ladder):
        assert "<mark>invoice</mark>" in text
        has_both = "<mark>invoice</mark> <mark>number</mark>" in text
        assert result.get("missing_words", []) == ([] if has_both else ["number"])
        assert text == result["evidence_preview"] == rung["evidence_preview"]
        assert "preview_text" not in rung["evidence"][0], "the same text is not repeated"
        assert result["id"] == rung["id"] and rung["id"] in answer.text
        evidence = rung["evidence"][0]
        assert evidence["field_path"] == "body"
        if evidence["complete"]:
            assert "read" not in evidence and f"\n{READ_ANY}\n" in f"{answer.text}\n"
            continue
        call = evidence["read"]
        assert call["tool"] == "read_record_field" and call["args"]["field_path"] == "body"
        assert call["args"] in [found.args for found in printed_calls(answer.text)]


@pytest.mark.parametrize("query", QUERIES)
@scenario("000/ladder/context-around-the-mark")
def test_a_window_is_never_the_term_alone_where_the_field_has_more(demo: Local, query: str) -> None:
    answer = demo.ok("search", query=query)
    rungs = answer.structured["content_ladder"]["records"]
    evidence = [
        (rank, *pair)
        for rank, rung in enumerate(rungs, start=1)
        for pair in zip(rung["evidence"], previews(rung))
    ]
    assert evidence
    for rank, one, shown in evidence:
        marked = "".join(re.findall("<mark>(.*?)</mark>", shown, re.DOTALL))
        plain = unmark(shown)
        assert marked
        if one["total_chars"] > len(marked):
            assert len(plain.strip()) > len(marked), one
        if one["total_chars"] > 320:
            # After three hits that prove every word, later ones are shorter.
            assert len(plain) >= (80 if rank <= 3 else 40), "a window worth reading"


@scenario("000/ladder/no-proof-no-window", "003/search/unproven-shows-identity")
def test_a_hit_without_proof_shows_who_it_is_and_how_to_open_it_but_no_text() -> None:
    body = {"object": "list", "has_more": False, "data": [UNPROVEN]}
    page = reading.read(body)
    rendering = renderer.render(page, Context())
    text, structured = rendering.blocks[0], rendering.structured
    assert fenced(text) == [] and "without a mark" not in text
    assert "body" not in text, "a matched body field is not inferred"
    (rung,) = structured["content_ladder"]["records"]
    assert "evidence" not in rung and "evidence_preview" not in structured["results"][0]
    (call,) = printed_calls(text)
    assert (call.tool, call.args) == ("fetch", {"id": "mail/messages:m_1"})
    assert call in structured_calls(structured)
    assert "mail/messages:m_1" in text and "Mail" in text


@scenario("003/order/evidence-before-wrappers")
def test_the_first_lines_are_the_header_with_the_first_id_and_then_the_evidence(
    small: Local,
) -> None:
    lines = small.ok("search", query="invoice", limit=2).lines
    assert lines[0].startswith("search query=invoice ")
    assert "first_id=mail-" in lines[0]
    assert lines[1].startswith("1 mail-")
    assert re.match(r"  (subject|body) \d+\.\.\d+ of \d+ match=\d+\.\.\d+", lines[2])
    assert lines[3].startswith("<<<") and "<mark>" in lines[4]
    general = [n for n, line in enumerate(lines) if line.startswith(("sources:", "next_page:"))]
    assert general and min(general) > max(n for n, line in enumerate(lines) if ">>>" in line)


@scenario("003/order/evidence-before-wrappers", "003/order/ids-not-uris")
def test_hits_show_ids_that_calls_take_and_no_uri_anywhere(small: Local) -> None:
    answer = small.ok("search", query="invoice")
    assert "pdpp://" not in answer.text
    assert not any("pdpp://" in str(found) for found in named(answer.structured, "id", "url"))
    for result in answer.structured["results"]:
        calls = [call for call in printed_calls(answer.text) if call.args.get("id") == result["id"]]
        assert all(call.tool == "read_record_field" for call in calls)
    rungs = answer.structured["content_ladder"]["records"]
    assert all("read" in one or one["complete"] for rung in rungs for one in rung["evidence"])
    assert READ_ANY in answer.lines


@scenario("003/order/ids-not-uris")
def test_a_record_uri_of_an_upstream_becomes_the_id_of_the_same_record() -> None:
    body = {**UNPROVEN, "record_uri": "pdpp://record/mail/messages:m_1"}
    body["evidence_excerpts"] = [{"field_path": "body", "preview_text": "a <mark>word</mark>"}]
    page = reading.read({"data": [body]})
    rendering = renderer.render(page, Context())
    assert "pdpp://" not in rendering.blocks[0]
    assert "pdpp://" not in str(rendering.structured)
    (call,) = printed_calls(rendering.blocks[0])
    around = {"query": "word", "before_chars": 200, "after_chars": 400}
    assert call.args == {"id": "mail/messages:m_1", "field_path": "body", **around}


@scenario("000/inline/small-field-inline", "003/inline/window-in-content")
@scenario("001/links/small-text-needs-no-file", "003/materialization/no-links-for-windows")
def test_a_small_field_comes_whole_with_its_size_and_its_completeness(small: Local) -> None:
    answer = small.ok("read_record_field", id="notes/notes:accents", field_path="text")
    text = "Das Café in der Straße führt Crème brûlée."
    assert fenced(answer.text) == [text]
    assert answer.lines[0] == (
        "read_record_field id=notes/notes:accents field=text chars=0..42 of=42 complete=true"
    )
    assert [block["type"] for block in answer.blocks] == ["text"]
    window = answer.structured["window"]
    assert window["text"] == text and window["complete"] and not window["has_more"]
    assert printed_calls(answer.text) == [], "nothing is left to read"


@scenario("000/large/metadata-and-a-way-on")
def test_a_large_field_says_its_size_and_how_to_read_on(small: Local) -> None:
    answer = small.ok("fetch", id=LONG_ID)
    metadata = answer.structured["metadata"]
    assert metadata["text_complete"] is False
    assert metadata["text_total_chars"] == len(LONG_BODY)
    shown = answer.structured["text"]
    assert LONG_BODY.startswith(shown) and len(shown) <= 16_384
    (call,) = printed_calls(answer.text)
    more = small.ok(call.tool, **call.args).structured["window"]
    assert more["start_chars"] == len(shown)
    assert LONG_BODY[len(shown) :].startswith(more["text"])


@scenario("000/large/metadata-and-a-way-on", "001/tokens/omissions-are-callable")
def test_a_large_field_of_a_list_is_a_preview_with_its_call(small: Local) -> None:
    answer = small.ok("query_records", stream="messages", filter={"id": "m_long"})
    (record,) = answer.structured["data"]["data"]
    body = record["data"]["body"]
    assert body["object"] == "field_preview" and body["size_chars"] == len(LONG_BODY)
    assert LONG_BODY.startswith(body["preview_text"])
    (call,) = printed_calls(answer.text)
    window = small.ok(call.tool, **call.args).structured["window"]
    assert window["start_chars"] == len(body["preview_text"])


@scenario("000/parity/rest-describes-evidence")
def test_a_rest_hit_describes_its_window_and_the_request_that_reads_it(small: Local) -> None:
    body = small.get("/v1/search?q=invoice+number")
    hit = next(hit for hit in body["data"] if hit["record_key"] == "m_long")
    (excerpt,) = hit["evidence_excerpts"]
    assert excerpt["field_path"] == "body" and excerpt["truncated"] is True
    assert "<mark>invoice</mark>" in excerpt["preview_text"]
    assert LONG_BODY[excerpt["start_chars"] : excerpt["end_chars"]] == unmark(
        excerpt["preview_text"]
    )
    window = small.get(excerpt["links"]["read"])["window"]
    assert "invoice number 4711" in window["text"]
    assert excerpt["read"]["route"] in excerpt["links"]["read"]


def test_nothing_is_invented_between_the_channels(demo: Local) -> None:
    """Each excerpt that is shown is the text of its field at the offsets it claims."""
    answer = demo.ok("search", query="invoice harbour")
    for rung in answer.structured["content_ladder"]["records"]:
        for one, shown in zip(rung["evidence"], previews(rung)):
            size = one["end_chars"] - one["start_chars"]
            window = demo.ok(
                "read_record_field",
                id=rung["id"],
                field_path=one["field_path"],
                offset_chars=one["start_chars"],
                limit_chars=size,
            ).structured["window"]
            assert window["text"] == unmark(shown)
            assert one["start_chars"] <= one["match_start_chars"] < one["end_chars"]


def test_a_call_is_spelled_the_same_in_both_channels(small: Local) -> None:
    answer = small.ok("search", query="standup", limit=3)
    for call in structured_calls(answer.structured):
        assert any(call.key() == printed.key() for printed in printed_calls(answer.text)), call
    assert reading.read({"data": [UNPROVEN]}).hits[0].heading
