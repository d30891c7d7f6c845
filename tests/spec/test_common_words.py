"""A word in more records than a search can read: titles come first, and the answer says so."""

import pytest

from evidence.limits import BUDGETS
from tests.helpers.caller import Local
from tests.helpers.reading import printed_calls
from tests.helpers.stores import BODY, TITLE, WORD, Connection, Stream, build, client

MANY = BUDGETS.candidate_rows + 200
TITLED = BUDGETS.candidates_newest + 100


@pytest.fixture(scope="module")
def orchard(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """Thousands of records mention an orchard, hundreds have it as title, the oldest is best."""
    records = [{"id": "a", "title": "Orchard", "body": "The orchard has new fences."}]
    records += [
        {"id": f"t{number}", "title": f"Orchard {number}", "body": "Nothing to report today."}
        for number in range(TITLED)
    ]
    records += [
        {"id": f"r{number}", "title": f"Day {number}", "body": f"Walked to the orchard, {number}."}
        for number in range(MANY)
    ]
    days = Stream("days", {"id": WORD, "title": TITLE, "body": BODY}, records, ["title", "body"])
    folder = tmp_path_factory.mktemp("orchard")
    return client(build([Connection("c", [days], "key", "Box")], folder))


def test_records_with_a_common_word_in_the_title_come_first(orchard: Local) -> None:
    results = orchard.ok("search", query="orchard").structured["results"]
    first, *others = [one["record_id"] for one in results]
    assert first == "a"
    assert {id[0] for id in others} == {"t"}


def test_an_answer_to_a_common_word_is_not_called_complete(orchard: Local) -> None:
    answer = orchard.ok("search", query="orchard")
    assert "complete=false" in answer.text and "some>=" in answer.text
    recall = answer.structured["data"]["meta"]["recall"]
    assert recall["complete"] is False and recall["ranking_scope"] == "candidate_window"


def test_a_rare_word_beside_a_common_one_still_selects(orchard: Local) -> None:
    results = orchard.ok("search", query="orchard fences").structured["results"]
    assert results[0]["record_id"] == "a"


def test_the_call_that_needs_every_word_has_the_corrected_spelling(orchard: Local) -> None:
    answer = orchard.ok("search", query="orchrad walked", limit=100)
    while cursor := answer.structured["data"].get("next_cursor"):
        answer = orchard.ok("search", query="orchrad walked", limit=100, cursor=cursor)
    (call,) = printed_calls(answer.text)
    assert call.args == {"query": "orchard walked", "limit": 100, "words": "all"}


def test_records_with_two_common_words_come_before_those_with_one(orchard: Local) -> None:
    results = orchard.ok("search", query="orchard walked").structured["results"]
    assert {one["record_id"][0] for one in results} == {"r"}
