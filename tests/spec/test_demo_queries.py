"""What a newcomer types over the demo finds what a person expects."""

import re
from typing import Any

import pytest

from evidence.text import unmark
from tests.helpers.caller import Local

#: The one mail that says where the quorum met.
QUORUM = "gmail-work/messages:m_0042"


def hits(demo: Local, query: str, **arguments: Any) -> list[dict[str, Any]]:
    answer = demo.ok("search", query=query, **arguments)
    results: list[dict[str, Any]] = answer.structured["results"]
    return results


@pytest.mark.parametrize(
    "query",
    [
        "where did the quorum meet",
        "elms",
        "guitare quorum",
        "kenji quorum",
        "subject:guitare quorum",
    ],
)
def test_a_question_leads_to_the_one_mail_that_answers_it(demo: Local, query: str) -> None:
    assert hits(demo, query)[0]["id"] == QUORUM


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("invoices Lisbon", ("invoice", "Lisbon")),
        ("summaries", ("summary",)),
        ("bicycle cost", ("bicycle", "costs")),
        ("invioce", ("invoice",)),
        ("kenji morie", ("Kenji", "Mori")),
        ("Rechnungen", ("Rechnung",)),
        ("Schluessel", ("Schlüssel",)),
        ("我们在老图书馆讨论了合同", ("图书馆",)),
        ("花园计划的发票", ("花园", "发票")),
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


def test_a_month_finds_records_of_that_month(demo: Local) -> None:
    for hit in hits(demo, "March 2026", limit=5):
        assert re.match("2026-03-", hit["at"]), hit


def test_a_sender_is_looked_for_among_senders_only(demo: Local) -> None:
    for hit in hits(demo, "from:Ada", limit=3):
        record = demo.ok("fetch", id=hit["id"]).structured
        assert "Ada" in record["text"] + str(record["metadata"])


def test_a_thai_sentence_finds_the_record_it_is_in(demo: Local) -> None:
    listed = demo.ok("search", query="ที่", limit=1).structured["results"]
    if listed:
        text = unmark(listed[0]["evidence_preview"])
        run = max(re.findall("[\u0e00-\u0e7f]+", text), key=len)
        assert hits(demo, run[:20])[0]["evidence_preview"]
