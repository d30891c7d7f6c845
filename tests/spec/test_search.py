"""What search finds, how honestly, and how it is written down."""

import re
from typing import Any

import pytest

from evidence.text import unmark
from evidence.limits import CONTRACT
from tests.helpers.caller import Answer, Local
from tests.helpers.reading import fenced, named, previews, printed_calls
from tests.helpers.small import CLOSE, FAR
from tests.spec.scenarios import scenario


def ids(answer: Answer) -> list[str]:
    return [result["id"] for result in answer.structured["results"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("flow control", {"phrase", "apart"}),
        ('"flow control"', {"phrase"}),
        ("“flow control”", {"phrase"}),
        ('control -"flow control"', {"apart"}),
        ("launch celebrate", {"emoji"}),
        ("celebr*", {"emoji"}),
        ("celebrations", {"emoji"}),
        ("celebrtae", {"emoji"}),
        ("launch brulee", {"emoji", "accents"}),
        ("where do flow and launch meet quagga", {"phrase", "apart", "emoji"}),
        ("CRÈME", {"accents"}),
        ("creme brulee", {"accents"}),
        ("strasse", {"accents"}),
        ("foo-bar.baz", {"punctuation"}),
        ("foo bar baz", {"punctuation"}),
        ("baz-foo", {"punctuation"}),
        ('"baz-foo"', set()),
        ("don't", {"punctuation"}),
        ("C++", {"punctuation"}),
        ("a_b", {"punctuation"}),
        ("猫", {"cjk"}),
        ("会議", {"cjk"}),
        ("議会", set()),
        ("東京で", {"cjk"}),
        ("🚀", {"emoji"}),
        ("🎉 Monday", {"emoji"}),
        ("OR flow AND", {"phrase", "apart"}),
        ("zebra quagga", set()),
        ("tag", {"tags"}),
    ],
)
def test_a_query_finds_exactly_what_its_words_say(
    small: Local, query: str, found: set[str]
) -> None:
    answer = small.ok("search", query=query, connection_id="notes", streams=["notes"])
    assert set(ids(answer)) == {f"notes/notes:{name}" for name in found}


@pytest.mark.parametrize("query", ["-flow", "!!!", "*", '""', "…"])
def test_a_query_without_a_word_to_find_is_refused_and_says_what_to_give(
    small: Local, query: str
) -> None:
    answer = small.fails("search", query=query)
    assert answer.error["param"] == "query"
    assert "at least one word" in answer.text


@pytest.mark.parametrize("size", [0, 501])
def test_a_query_is_1_to_500_characters(small: Local, size: int) -> None:
    assert small.fails("search", query="x" * size).error["param"] == "query"
    assert small.ok("search", query="x" * 500).structured["results"] == []


@pytest.mark.parametrize("query", ["invoice", "standup", "会議", "🎉", "flow control", "tag"])
def test_marks_are_balanced_and_mark_the_words_that_were_asked_for(
    small: Local, query: str
) -> None:
    answer = small.ok("search", query=query)
    assert answer.structured["results"]
    for preview in named(answer.structured, "evidence_preview", "preview_text"):
        tags = re.findall("</?mark>", preview)
        assert tags and tags == ["<mark>", "</mark>"] * (len(tags) // 2)
        assert not re.search(r"<<|\*\*|\[\[", preview)


def test_a_stored_tag_is_told_from_a_mark_of_ours(small: Local) -> None:
    answer = small.ok("search", query="tag word")
    (preview,) = set(named(answer.structured, "evidence_preview"))
    assert preview.count("<mark>") == 2
    assert unmark(preview) == "A stored <mark>tag</mark> stays a word."
    assert "escaped=2" in answer.lines[0], "the header counts what was written out"


def test_a_hit_shows_up_to_three_windows_and_the_tightest_first(small: Local) -> None:
    answer = small.ok("search", query="lily orchid")
    (rung,) = answer.structured["content_ladder"]["records"]
    first, second, third = map(unmark, previews(rung))
    assert "orchid lily" in first and CLOSE in second and FAR in third
    # All three are in a field that one read shows.
    assert [call.tool for call in printed_calls(answer.text)] == ["read_record_field"]


def test_each_hit_has_a_line_of_its_own_and_the_header_names_the_first(demo: Local) -> None:
    answer = demo.ok("search", query="invoice", limit=25)
    found = ids(answer)
    numbered = [line.split(" ", 2) for line in answer.lines if re.match(r"\d+ \S+/\S+:", line)]
    assert [parts[0] for parts in numbered] == [str(n) for n in range(1, len(found) + 1)]
    assert [parts[1] for parts in numbered] == found
    assert f"first_id={found[0]}" in answer.lines[0]


@pytest.mark.parametrize("query", ["invoice", "copper blue stone", "三番目", "Möwen", "☕️"])
def test_every_printed_call_of_a_hit_lands_on_its_match(demo: Local, query: str) -> None:
    answer = demo.ok("search", query=query)
    evidence = [
        e for rung in answer.structured["content_ladder"]["records"] for e in rung["evidence"]
    ]
    calls = [call for call in printed_calls(answer.text) if call.tool == "read_record_field"]
    assert evidence and len(calls) == sum(not one["complete"] for one in evidence)
    for one, call in zip([one for one in evidence if not one["complete"]], calls):
        window = demo.ok(call.tool, **call.args).structured["window"]
        assert window["start_chars"] <= one["match_start_chars"]
        shown = min(one["match_end_chars"], one["match_start_chars"] + 16_384)
        assert window["end_chars"] >= shown, call
        if "query" in call.args:
            assert window["match_start_chars"] == one["match_start_chars"]


def test_recall_is_told_and_never_inferred(demo: Local, small: Local) -> None:
    for client, query in ((demo, "invoice"), (small, "standup")):
        answer = client.ok("search", query=query)
        recall = answer.structured["data"]["meta"]["recall"]
        assert f"complete={str(recall['complete']).lower()}" in answer.lines[0]


def test_paging_through_search_gives_every_hit_once(small: Local) -> None:
    args: dict[str, object] | None = {"query": "standup", "limit": 7}
    found: list[str] = []
    while args:
        answer = small.ok("search", **args)
        found += ids(answer)
        following = [call for call in printed_calls(answer.text) if call.why == "next_page"]
        assert bool(following) == answer.structured["data"]["has_more"]
        args = following[0].args if following else None
    assert len(found) == len(set(found)) == 21


def test_counts_of_records_with_all_and_with_some_of_the_words_are_printed(small: Local) -> None:
    assert " all=2 some=4 " in small.ok("search", query="invoice number").lines[0]
    every = small.ok("search", query="invoice number", words="all")
    assert " hits=2 all=2 some=2 " in every.lines[0]


@scenario("004/fan-in/limit-is-global")
def test_without_a_connection_the_limit_is_for_all_of_them_together(wide: Local) -> None:
    answer = wide.ok("search", query="common", limit=7)
    results = answer.structured["results"]
    assert len(results) == 7
    for result in results:
        assert result["connection_id"].startswith("box-") and result["connector_key"] == "box"
        assert result["stream"] == "messages" and result["record_id"]
        assert result["display_name"].startswith("Box ")
        assert f'"{result["display_name"]}"' in answer.text
        assert result["title"] not in fenced(answer.text)


@scenario("004/fan-in/limit-is-global")
def test_hits_of_several_connections_come_with_a_source_mix(small: Local) -> None:
    answer = small.ok("search", query="invoice")
    (mix,) = [line for line in answer.lines if line.startswith("sources: ")]
    assert '"Work mail" (mail-work) 3' in mix and '"Home mail" (mail-home) 1' in mix


@scenario("004/fan-in/limit-is-global")
def test_a_title_is_the_declared_one_or_what_and_when_the_record_is(small: Local) -> None:
    declared = small.ok("search", query="invoice number").structured["results"][0]
    assert declared["title"] == "Invoice 4711"
    (made,) = small.ok("search", query="jetty", limit=1).structured["results"]
    assert made["title"] == "Notes · diary · 2026-03-01T20:00:00Z", "not the time it came in"


@scenario("004/fan-in/one-connection")
def test_a_connection_keeps_the_search_and_its_limit(small: Local) -> None:
    answer = small.ok("search", query="invoice", connection_id="mail-work", limit=2)
    results = answer.structured["results"]
    assert [result["connection_id"] for result in results] == ["mail-work"] * 2
    rest = printed_calls(answer.text)[-1]
    assert rest.args["connection_id"] == "mail-work"
    assert ids(small.ok("search", **rest.args)) == ["mail-work/messages:m_long"]


def test_a_filter_narrows_a_search_of_one_stream(small: Local) -> None:
    found = small.ok(
        "search", query="invoice", streams=["messages"], filter={"sender": "Noor Haddad"}
    )
    assert ids(found) == ["mail-work/messages:m_002"]
    error = small.fails("search", query="invoice", filter={"sender": "Noor Haddad"}).error
    assert error["retry_with"] == "streams"


def test_a_page_of_100_hits_stays_inside_the_result_and_goes_on(small: Local) -> None:
    answer = small.ok("search", query="standup*", limit=CONTRACT.page_items)
    assert len(answer.text.encode()) <= 24_576
    assert len(ids(answer)) == 21 or printed_calls(answer.text)[-1].why == "next_page"


@pytest.mark.parametrize("limit", [0, CONTRACT.page_items + 1, "5.0", 1.5, True])
def test_a_limit_outside_1_to_100_is_refused_and_not_clamped(small: Local, limit: object) -> None:
    assert small.fails("search", query="invoice", limit=limit).error["param"] == "limit"


@pytest.mark.parametrize(
    ("asked", "absent", "retry"),
    [
        ({"query": "Flow zebra", "words": "all"}, ["zebra"], {"words": "any"}),
        ({"query": "launch brulee", "words": "all"}, [], {"words": "any"}),
        (
            {"query": 'zebra -quagga "flow control'},  # a quote that is not closed runs to the end
            ["zebra"],
            {"query": '-quagga "flow control'},
        ),
        (
            {"query": 'celebr* "flow control" zebra -quagga'},
            ["zebra"],
            {"query": "-quagga celebr*"},
        ),
        ({"query": '"flow zebra" control -quagga'}, [], {"query": "control -quagga"}),
        ({"query": "monday zebra -launch"}, ["zebra"], {"query": "monday"}),
        ({"query": "zebra quagga"}, ["zebra", "quagga"], None),
        ({"query": "zebra"}, ["zebra"], None),
    ],
)
def test_a_search_without_hits_names_absent_words_and_offers_a_search_with_hits(
    small: Local, asked: dict[str, str], absent: list[str], retry: dict[str, str] | None
) -> None:
    args = {**asked, "connection_id": "notes", "streams": ["notes"]}
    answer = small.ok("search", **args)
    assert not ids(answer) and "No results." in answer.text
    assert answer.structured["data"]["meta"].get("absent_words", []) == absent
    assert (f"No record contains: {', '.join(absent)}." in answer.text) == bool(absent)
    offered = [call for call in printed_calls(answer.text) if call.why == "retry"]
    assert [call.args for call in offered] == ([{**args, **retry}] if retry else [])
    assert all(ids(small.ok(call.tool, **call.args)) for call in offered)


@pytest.mark.parametrize(
    "scope", [{"connection_id": "mail-work"}, {"streams": ["notes"], "filter": {"id": "emoji"}}]
)
def test_a_search_is_offered_in_a_wider_scope_if_none_has_hits_in_the_same(
    small: Local, scope: dict[str, Any]
) -> None:
    answer = small.ok("search", query="flow zebra", words="all", **scope)
    assert not ids(answer) and "zebra" in answer.structured["data"]["meta"]["absent_words"]
    (offered,) = [call for call in printed_calls(answer.text) if call.why == "retry"]
    assert offered.args == {"query": "flow zebra", "words": "any"}
    assert ids(small.ok(offered.tool, **offered.args))


def test_the_read_of_a_later_hit_by_offset_begins_with_a_word_or_a_sentence(small: Local) -> None:
    answer = small.ok("search", query="invoice", limit=4)
    (call,) = [one for one in printed_calls(answer.text) if "offset_chars" in one.args]
    (match,) = [
        one["match_start_chars"]
        for rung in answer.structured["content_ladder"]["records"]
        for one in rung["evidence"]
        if not one["complete"]
    ]
    assert 160 <= match - call.args["offset_chars"] <= 200
    window = small.ok(call.tool, **call.args).structured["window"]
    assert window["start_chars"] == call.args["offset_chars"]
    assert window["text"][0].isupper() and "invoice number 4711" in window["text"]
    assert window["limit_chars"] == call.args["limit_chars"] < 800


def test_the_read_of_a_first_hit_opens_a_long_field_at_its_match(demo: Local) -> None:
    answer = demo.ok("search", query="quorum elm", limit=1)
    (call,) = [one for one in printed_calls(answer.text) if one.tool == "read_record_field"]
    assert call.args["query"] == "quorum elm" and "match" not in call.args
    window = demo.ok(call.tool, **call.args).structured["window"]
    (match,) = {one for one in named(answer.structured, "match_start_chars")}
    assert window["match_start_chars"] == match
    assert "quorum met beneath the elm" in window["text"]
