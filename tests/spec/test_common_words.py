"""A word in more records than a search in blocks can read: titles come first, and it says so."""

from pathlib import Path

import pytest

from evidence.limits import BUDGETS, CONTRACT
from tests.helpers.caller import Local
from tests.helpers.reading import printed_calls
from tests.helpers.stores import BODY, TIME, TITLE, WORD, Connection, Stream, build, client

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
    for number, record in enumerate(records):
        record["at"] = f"20{10 + number // 336}-{1 + number // 28 % 12:02}-{1 + number % 28:02}"
    fields = {"id": WORD, "at": TIME, "title": TITLE, "body": BODY}
    days = Stream("days", fields, records, ["title", "body"], "at")
    folder = tmp_path_factory.mktemp("orchard")
    return client(build([Connection("c", [days], "key", "Box")], folder, RUNG_COMPILED="off"))


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
    *_, answer = orchard.pages("search", query="orchrad walked", limit=100)
    (call,) = printed_calls(answer.text)
    assert call.args == {"query": "orchard walked", "limit": 100, "words": "all"}


@pytest.mark.parametrize("words", ["any", "all"])
def test_the_end_of_a_list_that_leaves_matches_out_has_a_call_for_earlier_ones(
    orchard: Local, words: str
) -> None:
    walk = list(orchard.pages("search", query="orchard", words=words, limit=100))
    ids = [hit["record_id"] for answer in walk for hit in answer.structured["results"]]
    recall = walk[-1].structured["data"]["meta"]["recall"]
    assert recall["candidate_window_limit"] == len(set(ids)) == len(ids)
    (call,) = printed_calls(walk[-1].text)
    assert call.args.items() >= {"query": "orchard", "words": words, "limit": 100}.items()
    assert call.args.keys() == {"query", "words", "limit", "until"}
    earlier = list(orchard.pages(call.tool, **call.args))
    assert {hit["record_id"] for answer in earlier for hit in answer.structured["results"]} - {*ids}


def test_records_with_two_common_words_come_before_those_with_one(orchard: Local) -> None:
    results = orchard.ok("search", query="orchard walked").structured["results"]
    assert {one["record_id"][0] for one in results} == {"r"}


def test_words_too_common_to_select_alone_select_together(tmp_path: Path) -> None:
    rare = "amber basket chimney dragon harbour meadow pebble quorum ribbon velvet".split()
    many = BUDGETS.candidate_rows // len(rare) - 10
    records = [{"id": f"r{number}", "body": " ".join(rare)} for number in range(many)]
    records += [{"id": f"c{number}", "body": "copper lantern"} for number in range(many + 1)]
    stream = Stream("texts", {"id": WORD, "body": BODY}, records, ["body"])
    texts = client(build([Connection("c", [stream], "key", "Box")], tmp_path, RUNG_COMPILED="off"))
    walk = list(texts.pages("search", query=" ".join([*rare, "copper lantern"]), limit=100))
    ids = [hit["record_id"] for answer in walk for hit in answer.structured["results"]]
    assert "complete=false" in walk[0].text
    assert sorted(ids) == sorted(record["id"] for record in records)


def test_a_word_in_few_records_but_too_many_passages_is_not_called_complete(
    tmp_path: Path,
) -> None:
    """The rows of one long value that hold the word are more than a search reads."""
    passages = BUDGETS.candidate_rows + 10
    long = ("gravel " * 200 + "quokka ") * (passages * CONTRACT.passage_stride_chars // 1_400)
    records = [{"id": "long", "body": long}, {"id": "short", "body": "quokka"}]
    stream = Stream("texts", {"id": WORD, "body": BODY}, records, ["body"])
    house = build([Connection("c", [stream], "key")], tmp_path, RUNG_COMPILED="off")
    answer = client(house).ok("search", query="quokka")
    recall = answer.structured["data"]["meta"]["recall"]
    assert recall["complete"] is False and "some>=" in answer.text
