"""What can be typed into a search box."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.fold import fold
from evidence.question import Query, Term, parse_query


def words(text: str) -> list[str]:
    """The terms of a query in short: words joined, "*" for a prefix, "-" for an exclusion."""
    return [
        "-" * term.excluded + " ".join(term.words) + "*" * term.prefix
        for term in parse_query(text).terms
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Flow  Control", ["flow", "control"]),
        ('"flow control"', ["flow control"]),
        ("“flow control” «and more» „noch eins“", ["flow control", "and more", "noch eins"]),
        ('say "to be or', ["say", "to be or"]),
        ('ab"c d"e', ["ab", "c d", "e"]),
        ("foo-bar don't 38.101", ["foo bar", "don t", "38 101"]),
        ("C++ foo_bar @nasa", ["c", "foo bar", "nasa"]),
    ],
)
def test_spaces_separate_and_quotes_and_punctuation_join(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat -dog", ["cat", "-dog"]),
        ('-"to do" list', ["-to do", "list"]),
        ("-foo-bar", ["-foo bar"]),
        ("well-known", ["well known"]),
        ("a - b", ["a", "b"]),
        ("--verbose", ["verbose"]),
        ('a-"b c"', ["a", "b c"]),
    ],
)
def test_a_minus_before_a_word_excludes_it(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("micro*", ["micro*"]),
        ("-micro*", ["-micro*"]),
        ("foo-ba*", ["foo ba*"]),
        ("Café*", ["cafe*"]),
        ("**bold**", ["bold"]),
        ("a*b", ["a b"]),
        ("東京*", ["東 京"]),
        ("* -* ***", []),
    ],
)
def test_a_star_after_a_word_makes_it_a_prefix(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_unspaced_scripts_are_phrases_of_their_characters() -> None:
    assert words("使用Docker部署") == ["使 用 docker 部 署"]
    assert words("都 東京 검색") == ["都", "東 京", "검 색"]


def test_operators_are_plain_words() -> None:
    assert words("cats AND dogs OR NEAR(x NOT") == [
        "cats",
        "and",
        "dogs",
        "or",
        "near x",
        "not",
    ]


def test_repeats_are_dropped_and_the_order_stays() -> None:
    assert words("b a B a* á") == ["b", "a", "a*"]


def test_wanted_and_excluded_terms_are_told_apart() -> None:
    query = parse_query("one -two three")
    assert query.wanted == (Term(("one",)), Term(("three",)))
    assert query.excluded == (Term(("two",), excluded=True),)


@pytest.mark.parametrize("text", ["", " ", '"', '""', "-", "... !?", "\x00", "\ud800", "-draft"])
def test_a_query_without_words_wants_nothing(text: str) -> None:
    assert parse_query(text).wanted == ()


@given(st.text(st.one_of(st.characters(), st.sampled_from('"“”„«»-* ab東'))))
def test_every_text_is_a_query(text: str) -> None:
    query = parse_query(text)
    assert isinstance(query, Query)
    assert query.text == text
    for term in query.terms:
        assert term.words
        assert all(fold(text).find(word) >= 0 for word in term.words)
    spoken = {word for term in query.terms for word in term.words}
    assert spoken == set(fold(text).split())
