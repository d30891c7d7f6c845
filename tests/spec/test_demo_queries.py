"""The demo's questions, and what else a newcomer types, find what a person expects."""

import re
from typing import Any

import pytest

from evidence.text import unescape, unmark
from service.demo.fill import Question, questions
from tests.helpers.caller import Local
from tests.helpers.reading import Call, fenced, printed_calls

QUESTIONS = pytest.mark.parametrize("asked", questions(), ids=lambda one: one.question)
#: The one mail that says where the quorum met.
QUORUM = "gmail-home/messages:m_0042"


@QUESTIONS
def test_a_question_as_typed_puts_the_record_that_answers_it_first(
    demo: Local, asked: Question
) -> None:
    assert hits(demo, asked.question)[0]["id"] == asked.id


@QUESTIONS
def test_an_agent_that_reads_text_alone_finds_the_answer(demo: Local, asked: Question) -> None:
    """The agent searches. If the excerpt is cut, it opens the first hit with the printed call."""
    seen, calls = "", [Call("search", {"query": asked.question, "limit": 1})]
    while calls and asked.answer not in seen:
        answer = demo.ok(calls[0].tool, **calls[0].args)
        assert answer.text.count(asked.id)
        seen = unmark(unescape("\n".join(fenced(answer.text))))
        calls = [call for call in printed_calls(answer.text) if call.tool == "read_record_field"]
    assert asked.answer in seen


def hits(demo: Local, query: str, **arguments: Any) -> list[dict[str, Any]]:
    answer = demo.ok("search", query=query, **arguments)
    results: list[dict[str, Any]] = answer.structured["results"]
    return results


@pytest.mark.parametrize(
    "query",
    [
        "where did the quorum meet",
        "beneath the elms",
        "minutes quorum",
        "dierksen quorum",
        "subject:minutes quorum",
    ],
)
def test_a_question_leads_to_the_one_mail_that_answers_it(demo: Local, query: str) -> None:
    assert hits(demo, query)[0]["id"] == QUORUM


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("summaries", ("summar",)),
        ("harbours mooring fee", ("mooring", "fee")),
        ("invioce", ("invoice",)),
        ("kenji morie", ("Kenji", "Mori")),
        ("Rechnungen", ("Rechnung",)),
        ("Schluessel", ("Schlüssel",)),
    ],
)
def test_the_first_three_hits_show_the_words_that_were_meant(
    demo: Local, query: str, words: tuple[str, ...]
) -> None:
    found = hits(demo, query, limit=3)
    assert len(found) == 3
    for hit in found:
        text = unmark(hit["evidence_preview"]).casefold()
        assert all(word.casefold() in text for word in words), hit


def test_a_chinese_sentence_finds_the_mail_with_its_words(demo: Local) -> None:
    assert "花园" in unmark(hits(demo, "邻居的花园计划")[0]["evidence_preview"])


def test_a_month_finds_records_of_that_month(demo: Local) -> None:
    for hit in hits(demo, "March 2026", limit=5):
        assert re.match("2026-03-", hit["at"]), hit


def test_a_sender_is_looked_for_among_senders_only(demo: Local) -> None:
    for hit in hits(demo, "from:Ada", limit=3):
        record = demo.ok("fetch", id=hit["id"]).structured
        assert "Ada" in record["text"] + str(record["metadata"])
