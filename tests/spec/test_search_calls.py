"""Calls printed with hits open the excerpts they were printed with, and continue from there."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evidence.limits import CONTRACT
from evidence.text import unmark
from tests.helpers.caller import Answer, Local
from tests.helpers.reading import Call, previews, printed_calls
from tests.helpers.stores import BODY, TITLE, WORD, Connection, Stream, build, client

WORDS = ("copper", "lantern", "harbour", "quorum", "walking", "walks", "straße", "会議", "ledger")
FILLER = ("the", "and", "of", "gravel", "window", "slowly", "meadow", "until", "paper", "🚀", "ﬁne")
QUERIES = (
    "copper",
    "walked",
    "where did the quorum meet",
    '"copper lantern" ledger',
    "copper lantern harbour quorum",
    "strasse -zebra",
    "会議 ledger",
    "lantren harbour",
    "the quorum",
    "of the",
    "copper-lantern",
)


def texts(seed: int) -> Iterator[tuple[str, str]]:
    """(id, text) of records of every size: shown whole, inline and in chunk rows."""
    chosen = random.Random(seed)
    for number in range(14):
        size = chosen.choice([20, 60, 300, 1_500, 4_000, 16_000])
        rare = chosen.choice([2, 9, 90])
        words = [
            chosen.choice(WORDS if chosen.randrange(rare) == 0 else FILLER) for _ in range(size)
        ]
        words[chosen.randrange(size)] = "copper lantern, the quorum"
        yield f"r{number}", chosen.choice([" ", ". ", "\n"]).join(words)


@pytest.fixture(scope="module", params=range(3))
def long_texts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Local:
    records = [{"id": id, "title": f"Text {id}", "body": text} for id, text in texts(request.param)]
    stream = Stream("texts", {"id": WORD, "title": TITLE, "body": BODY}, records, ("title", "body"))
    folder = tmp_path_factory.mktemp("texts")
    return client(build([Connection("c", [stream], "key")], folder))


def evidence(answer: Answer) -> list[tuple[int, dict[str, Any], str, Call | None]]:
    """(rank, window, its text, its call) of every window of a page."""
    lines = [line for line in answer.lines if not line.startswith("  not shown: ")]
    calls = [one for one in printed_calls("\n".join(lines)) if one.tool == "read_record_field"]
    found = []
    ranks = [result["rank"] for result in answer.structured["results"]]
    for rank, rung in zip(ranks, answer.structured["content_ladder"]["records"]):
        for window, shown in zip(rung.get("evidence", []), previews(rung)):
            call = None if window["complete"] else calls.pop(0)
            found.append((rank, window, unmark(shown), call))
    assert not calls
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_every_call_lands_on_its_excerpt(long_texts: Local, query: str) -> None:
    page = long_texts.ok("search", query=query)
    assert page.structured["results"]
    for rank, one, shown, call in evidence(page):
        if call is None:
            continue
        window = long_texts.ok(call.tool, **call.args).structured["window"]
        assert shown in window["text"]
        assert window["start_chars"] <= one["start_chars"]
        assert window["end_chars"] >= one["end_chars"]
        by_query, by_offset = "query" in call.args, "offset_chars" in call.args
        if one["total_chars"] <= CONTRACT.window_chars:  # one read shows it whole
            assert not by_query and not by_offset
            assert (window["start_chars"], window["complete"]) == (0, True)
            continue
        assert by_query != by_offset == ("limit_chars" in call.args)
        assert not by_query or rank <= CONTRACT.full_hits
        if by_query:
            assert window["match"] == call.args.get("match", 1)
            assert call.args.get("match") != 1
            assert window["match_start_chars"] == one["match_start_chars"]


@pytest.mark.parametrize("query", ["copper", "walked", "copper lantern harbour quorum"])
def test_the_calls_of_the_first_hits_walk_on_through_the_matches(
    long_texts: Local, query: str
) -> None:
    calls = [call for _, _, _, call in evidence(long_texts.ok("search", query=query)) if call]
    walking = [call for call in calls if "query" in call.args]
    assert walking
    for call in walking:
        answer, seen = long_texts.ok(call.tool, **call.args), set[tuple[int, int]]()
        for _ in range(5):
            window = answer.structured["window"]
            place = window["match_start_chars"], window["match_end_chars"]
            assert place not in seen
            seen.add(place)
            following = answer.structured.get("next_match")
            if following is None:
                break
            assert following["args"]["match"] == window["match"] + 1
            answer = long_texts.ok(following["tool"], **following["args"])


def test_quotes_in_a_read_are_looked_for_beside_words(long_texts: Local) -> None:
    """A window of a query with a phrase shows the phrase, not only the other words."""
    page = long_texts.ok("search", query='"copper lantern" ledger', limit=3)
    shown = [text for _, _, text, call in evidence(page) if call and "query" in call.args]
    assert any("copper lantern" in text for text in shown)


def test_rest_offers_the_same_calls(long_texts: Local) -> None:
    hits = long_texts.get("/v1/search?q=copper+lantern+harbour&limit=10")["data"]
    for hit in hits:
        for one in hit["evidence_excerpts"]:
            window = long_texts.get(one["links"]["read"])
            assert unmark(one["preview_text"]) in window["window"]["text"]


AT_THE_END = range(0, 120, 7)


@pytest.mark.parametrize("query", ["quorum", '"the quorum"', "quorum -zebra"])
def test_a_call_covers_an_excerpt_at_the_end_of_a_field(ends: Local, query: str) -> None:
    for after in AT_THE_END:
        page = ends.ok("search", query=query, filter={"kind": f"k{after}"})
        calls = evidence(page)
        assert len(calls) == 5
        for _, one, shown, call in calls:
            assert call is not None
            window = ends.ok(call.tool, **call.args).structured["window"]
            assert window["start_chars"] <= one["start_chars"] and shown in window["text"]


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """Long texts with one word that is a few characters before their end."""
    records = [
        {
            "id": f"r{after}-{number}",
            "kind": f"k{after}",
            "body": f"{before * (5_000 // len(before))}the quorum{'. met' * 99}"[: 5_010 + after],
        }
        for after in AT_THE_END
        for number, before in enumerate(
            ("gravel ", "gravel. ", "a window ", "ox. ", "pebblestone ")
        )
    ]
    query = {"exact_filters": ["kind"]}
    stream = Stream(
        "texts", {"id": WORD, "kind": WORD, "body": BODY}, records, ("body",), query=query
    )
    return client(build([Connection("c", [stream], "key")], tmp_path_factory.mktemp("ends")))


@pytest.mark.parametrize("size", [3_000, 70_000])
def test_a_word_that_a_passage_cuts_is_not_evidence(tmp_path: Path, size: int) -> None:
    before = "gravel " * CONTRACT.passage_stride_chars
    text = f"{before[: CONTRACT.passage_stride_chars - 1]}xquorum lantern "
    record = {"id": "one", "body": f"{text}{'meadow ' * size}"[:size]}
    other = {"id": "two", "body": "the quorum met"}
    stream = Stream("texts", {"id": WORD, "body": BODY}, [record, other], ("body",))
    house = build([Connection("c", [stream], "key")], tmp_path)
    page = client(house).ok("search", query="quorum lantern")
    hits = {hit["id"]: hit for hit in page.structured["results"]}
    assert hits["c/texts:one"]["matched_words"] == ["lantern"]
    (rung,) = (
        one
        for hit, one in zip(
            page.structured["results"], page.structured["content_ladder"]["records"]
        )
        if hit["id"] == "c/texts:one"
    )
    assert any("<mark>lantern" in shown for shown in previews(rung))
    assert not any("<mark>quorum" in shown for shown in previews(rung))
