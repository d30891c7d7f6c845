"""Where words and literal text are found, in the offsets of the text as it was given."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.find import OCCURRENCES_MAX, Span, literals, passages, spans
from evidence.fold import extends, fold, fold_literal
from evidence.question import Query, Term, parse_query
from evidence.ranking import Group

WORDS = (
    "lag node fail failover Straße 東京 東 가나 ﬁle İst 🚀 👍🏽 Cafe\u0301 हिन्दी ｶﾞ ab a".split()
)
sentences = st.lists(st.sampled_from([*WORDS, ",", "-", "x", "\u200d"]), max_size=30).map(" ".join)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def shown(text: str, query: str, *, limit: int = 3, partial: bool = False) -> list[str]:
    """The spans as text."""
    found = spans(text, parse_query(query), limit=limit, partial=partial)
    return [text[span.start : span.end] for span in found]


def holds(text: str, term: Term) -> bool:
    words = " ".join(fold(text).split())
    return f" {' '.join(term.words)}{' ' * (not term.prefix)}" in f" {words} "


def test_the_tightest_span_comes_first_and_earlier_ones_win_ties() -> None:
    far = ", and then nothing for a good while, "
    text = far.join(["lag and much later node", "lag on a node", "lag on b node"])
    assert shown(text, "lag node") == [
        "lag on a node",
        "lag on b node",
        "lag and much later node",
    ]


def test_spans_do_not_overlap_and_stop_at_the_limit() -> None:
    assert shown("a b a b a", "a b") == ["a b", "a b"]
    assert shown("a b a b a", "a b", limit=1) == ["a b"]


def test_words_are_found_whole_and_prefixes_at_word_starts() -> None:
    assert shown("failover prefail FAIL, fails", "fail") == ["FAIL"]
    assert shown("failover prefail FAIL, fails", "fail*") == ["FAIL", "fails", "failover"]


def test_the_words_of_a_phrase_stand_side_by_side_in_order() -> None:
    text = "lag high, high lag, high -- lag and highlag"
    assert shown(text, '"high lag"') == ["high lag", "high -- lag"]
    assert shown("foo foo foo bar", '"foo foo bar"') == ["foo foo bar"]
    assert shown("of the cat and of the catalogue", '"of the"*') == ["of the", "of the"]


def test_marks_are_the_terms_inside_the_span() -> None:
    (span,) = spans("so lag, lag on my node now", parse_query("node lag"))
    assert span == Span(8, 22, ((8, 11), (18, 22)))


def test_marks_never_overlap() -> None:
    (span,) = spans("a flow control b", parse_query('flow "flow control"'))
    assert span == Span(2, 14, ((2, 14),))
    (span,) = spans("a ㍿ b", parse_query("株 社"))
    assert span == Span(2, 3, ((2, 3),))


def test_without_every_term_only_a_partial_search_finds_something() -> None:
    assert shown("lag on the node", "lag ghost node") == []
    assert shown("lag on the node", "lag ghost node", partial=True) == ["lag on the node"]
    assert shown("lag on the node", "ghost", partial=True) == []


def test_a_query_that_wants_nothing_finds_nothing() -> None:
    assert shown("lag, -", "-lag") == []
    assert shown("lag, -", "...") == []


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Die Große Straße!", "strasse", "Straße"),
        ("in İstanbul, now", "istanbul", "İstanbul"),
        ("one ﬁle more", "file", "ﬁle"),
        ("une Cafe\u0301, ici", "café", "Cafe\u0301"),
        ("の東京都に", "東京", "東京"),
        ("使用Docker部署", "docker", "Docker"),
        ("ＡＢＣ会社", "abc", "ＡＢＣ"),
        ("ｶﾞｲﾄﾞを", "ガイド", "ｶﾞｲﾄﾞ"),
        ("go ❤\ufe0f go", "❤", "❤\ufe0f"),
        ("go 👍🏽 go", "👍", "👍🏽"),
        ("में हिन्दी में", "हिन्दी", "हिन्दी"),
    ],
)
def test_spans_cover_the_original_characters(text: str, query: str, expected: str) -> None:
    assert shown(text, query) == [expected]


@given(sentences, queries)
def test_every_span_holds_every_wanted_term(text: str, typed: str) -> None:
    query = parse_query(typed)
    found = spans(text, query)
    assert bool(found) is all(holds(text, term) for term in query.wanted)
    for span in found:
        part = text[span.start : span.end]
        assert all(holds(part, term) for term in query.wanted)
        edges = [place for mark in span.marks for place in mark]
        assert edges == sorted(edges)
        assert (edges[0], edges[-1]) == (span.start, span.end)
        for start, end in span.marks:
            assert any(holds(text[start:end], term) for term in query.wanted)


def places_of(words: list[tuple[str, int, int]], term: Term) -> list[tuple[int, int]]:
    """Where a term stands among folded words, without overlap."""
    found, number, size = [], 0, len(term.words)
    while number + size <= len(words):
        *fore, last = [word for word, _, _ in words[number : number + size]]
        *wanted, end = term.words
        if fore == wanted and (last.startswith(end) if term.prefix else last == end):
            found.append((words[number][1], words[number + size - 1][2]))
            number += size
        else:
            number += 1
    return found


def expected_spans(text: str, query: Query, limit: int, partial: bool) -> list[Span]:
    """What `spans` promises, code point by code point and by trying all pairs of ends."""
    sources = [index for index, char in enumerate(text) for _ in fold(char)]
    folded = "".join(map(fold, text))
    words = [(found[0], found.start(), found.end()) for found in re.finditer("[^ ]+", folded)]
    places = [places_of(words, term) for term in query.wanted]
    present = {number for number, found in enumerate(places) if found}
    if not present or (len(present) < len(places) and not partial):
        return []
    stands = sorted((*place, number) for number, found in enumerate(places) for place in found)
    stretches = []
    for last in range(len(stands)):
        holding = [
            first
            for first in range(last + 1)
            if {number for _, _, number in stands[first : last + 1]} == present
        ]
        if holding:
            first, start = holding[-1], stands[holding[-1]][0]
            end = max(end for _, end, _ in stands[first : last + 1])
            stretches.append((end - start, start, first, last))
    chosen: list[tuple[int, int, int, int]] = []
    for one in sorted(stretches):
        if all(one[0] + one[1] <= other[1] or sum(other[:2]) <= one[1] for other in chosen):
            chosen.append(one)
    found_spans = []
    for _, _, first, last in chosen[:limit]:
        marks: list[tuple[int, int]] = []
        for begin, stop, _ in stands[first : last + 1]:
            start, end = sources[begin], sources[stop - 1] + 1
            while end < len(text) and extends(text[end]):
                end += 1
            if marks and start < marks[-1][1]:
                start, end = marks[-1][0], max(end, marks.pop()[1])
            marks.append((start, end))
        found_spans.append(Span(marks[0][0], marks[-1][1], tuple(marks)))
    return found_spans


typed_queries = st.lists(
    st.sampled_from([*WORDS, "fail*", "a*", '"lag node"', '"a ab"', "가*", "株", "-x", "no-de"]),
    min_size=1,
    max_size=4,
).map(" ".join)
plain_sentences = st.lists(st.sampled_from(["lag", "node", "a", "ab", "fail", ",", "\n"])).map(
    " ".join
)


@given(
    st.one_of(sentences, plain_sentences, st.text("abA 東é’\u0301🚀株㍿,")),
    typed_queries,
    st.integers(1, 9),
    st.booleans(),
)
def test_spans_are_what_trying_everything_finds(
    text: str, typed: str, limit: int, partial: bool
) -> None:
    query = parse_query(typed)
    expected = expected_spans(text, query, limit, partial)
    assert spans(text, query, limit=limit, partial=partial) == expected


@given(st.text("ab ,"), st.sets(st.sampled_from(["a", "b", "ab", "ba"]), min_size=1))
def test_the_first_span_is_as_short_as_any(text: str, words: set[str]) -> None:
    places = [[m.span() for m in re.finditer(rf"\b{word}\b", text)] for word in words]
    lengths = [max(e for _, e in c) - min(s for s, _ in c) for c in product(*places)]
    found = spans(text, parse_query(" ".join(words)))
    assert [span.end - span.start for span in found][:1] == sorted(lengths)[:1]


def test_only_the_first_occurrences_of_a_term_are_looked_at() -> None:
    text = "a " * (OCCURRENCES_MAX + 5) + "b"
    (span,) = spans(text, parse_query("a b"))
    assert span.start == 2 * (OCCURRENCES_MAX - 1)


def test_literal_text_is_found_inside_words_and_with_its_punctuation() -> None:
    assert list(literals("see foo-bar.com", "O-BAR.")) == [(6, 12)]
    assert list(literals("see foo-bar.com", "foo bar")) == []
    assert list(literals("Große STRASSE", "große straße")) == [(0, 13)]
    assert list(literals("aaa", "")) == []
    assert list(literals("oﬃce", "f")) == [(1, 2)]


@given(st.text("abAB.+ ", max_size=40), st.text("abAB.+ ", min_size=1, max_size=3))
def test_ascii_literals_are_what_a_plain_search_finds(text: str, needle: str) -> None:
    expected = [m.span() for m in re.finditer(re.escape(needle), text, re.IGNORECASE)]
    assert list(literals(text, needle)) == expected


@given(sentences, st.data())
def test_every_literal_reads_like_its_needle(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    needle = text[start : data.draw(st.integers(start, len(text)))]
    found = list(literals(text, needle))
    for first, last in found:
        assert fold_literal(needle) in fold_literal(text[first:last])
    assert all(a[1] <= b[0] for a, b in zip(found, found[1:]))
    assert bool(found) is bool(fold_literal(needle))


@pytest.mark.parametrize(
    ("cut", "found"),
    [
        ((False, False), ["lag", "node"]),
        ((True, False), ["node"]),
        ((False, True), ["lag"]),
        ((True, True), []),
    ],
)
def test_a_word_that_an_end_of_a_passage_may_cut_is_not_found_there(
    cut: tuple[bool, bool], found: list[str]
) -> None:
    text = f"lag {'of the ' * 100}node"
    groups = [Group(Term((word,)), count=1, idf=1.0) for word in ("lag", "node")]
    shown = [text[one.span.start : one.span.end] for one in passages(text, groups, cut=cut)]
    assert sorted(shown) == found
