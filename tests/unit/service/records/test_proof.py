"""Proven windows: what they show of a field, and where the read beside them begins."""

import sqlite3

from hypothesis import example, given
from hypothesis import strategies as st

from evidence.find import spans
from evidence.limits import BUDGETS, CONTRACT
from evidence.query import parse
from evidence.text import beginning, split, unmark
from service.records.engine import Stored
from service.records.finding import matches
from service.records.proof import SPANS_CONSIDERED, Proof, prove
from service.records.texts import InlineText

WORDS = "lag node Node, fail Straße 東京 🚀 Cafe\u0301 a. <b> \\u{41} \u202e \n".split(" ")
FILLER = "and then nothing for a while; " * 12
LONG = "filler " * (CONTRACT.window_chars // 7 + 1)
texts = st.lists(st.sampled_from([*WORDS, *WORDS, FILLER]), min_size=1, max_size=40).map(" ".join)
queries = st.lists(
    st.sampled_from(["lag", "node", "strasse", "東京", "🚀", "cafe", "a", '"lag node"', "fa*"]),
    min_size=1,
    max_size=3,
).map(" ".join)


def proofs_of(text: str, typed: str) -> list[Proof]:
    """The windows of a record that has this text in one field."""
    record = Stored(1, 1, "r1", "2026-01-01T00:00:00Z", {"body": text}, {}, {}, len(text))
    query = parse(typed)
    return prove(sqlite3.connect(":memory:"), record, ["body"], query, query.wanted)


@given(texts, queries)
@example(f"lag node lag {FILLER} node", "lag node")  # the second place is longer than a window
def test_windows_show_the_text_with_its_places_marked(text: str, typed: str) -> None:
    places = spans(text, parse(typed), limit=SPANS_CONSIDERED)
    own = {(place.start, place.end): set(place.marks) for place in places}
    proofs = proofs_of(text, typed)
    assert bool(proofs) is bool(places)
    assert len(proofs) <= CONTRACT.windows_per_hit
    for proof in proofs:
        assert unmark(proof.preview) == text[proof.start : proof.end]
        assert proof.total == len(text)
        assert proof.end - proof.start <= BUDGETS.excerpt_chars
        marks = {(start + proof.start, end + proof.start) for start, end in split(proof.preview)[1]}
        wanted = own[proof.match_start, proof.match_end]
        assert marks <= set().union(*own.values())
        assert min(wanted) in marks
        if proof.start <= proof.match_start and proof.match_end <= proof.end:
            assert wanted <= marks


def test_all_places_in_a_window_are_marked() -> None:
    (proof,) = proofs_of("Lag, then lag\nand lag", "lag")
    assert proof.preview == "<mark>Lag</mark>, then <mark>lag</mark>\nand <mark>lag</mark>"


@given(texts, queries)
def test_no_window_is_of_a_place_that_another_shows(text: str, typed: str) -> None:
    shown: list[Proof] = []
    for proof in proofs_of(text, typed):
        for other in shown:
            assert not (other.start <= proof.match_start and proof.match_end <= other.end)
        shown.append(proof)


@given(texts, queries)
@example("node, lag. lag node", "lag node")
@example("lag -- node. node lag", "node lag")
def test_a_read_by_the_query_lands_on_the_first_window(text: str, typed: str) -> None:
    first, *others = proofs_of(text, typed) or [None]
    if first is not None and first.by_query:
        landed = next(matches(InlineText(text), typed))
        assert landed == (first.match_start, first.match_end)
    assert not any(other.by_query for other in others if other)


def test_plain_words_that_stand_in_one_place_are_read_by_the_query() -> None:
    assert [proof.by_query for proof in proofs_of("a Lag on the node", "lag node")] == [True]
    assert [proof.by_query for proof in proofs_of("a Lag on the node", '"lag on"')] == [False]


def test_among_more_places_than_are_looked_at_none_is_read_by_two_words() -> None:
    assert proofs_of("lag, a node; and " * SPANS_CONSIDERED, "lag node")[0].by_query is False
    assert proofs_of("lag, a node; and " * SPANS_CONSIDERED, "lag")[0].by_query is True


@given(texts, queries, st.integers(0, 2))
def test_a_read_by_offset_begins_near_the_match(text: str, typed: str, before: int) -> None:
    text = LONG[: before * 4_000] + text + LONG
    for proof in proofs_of(text, typed):
        assert proof.read_from == beginning(text, proof.match_start - CONTRACT.match_before_chars)
        assert 0 <= proof.match_start - proof.read_from <= CONTRACT.match_before_chars


def test_no_read_by_offset_is_worked_out_for_a_field_that_one_read_shows_whole() -> None:
    text = "x " * (CONTRACT.window_chars // 2 - 2) + "lag "
    assert [proof.read_from for proof in proofs_of(text, "lag")] == [0]
    assert [proof.read_from > 0 for proof in proofs_of(text + "x", "lag")] == [True]
