"""The grammar of a paper search: every text is a query or is told why not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.errors import InvalidRequest
from evidence.question import Term
from service.papers.query import FIELDS, Name, parse


def test_words_are_wanted_and_minus_refuses() -> None:
    query = parse('Graph "neural networks" transform* -survey -"short paper"')
    assert query.words == (Term(("graph",)),)
    assert query.required == (Term(("neural", "networks")), Term(("transform",), prefix=True))
    assert query.refused == (
        Term(("survey",), excluded=True),
        Term(("short", "paper"), excluded=True),
    )


@pytest.mark.parametrize("number", ["10.1038/nature14539", "arXiv:1706.03762", "1706.03762"])
def test_a_number_is_required_as_it_is(number: str) -> None:
    query = parse(f"attention {number}")
    assert query.words == (Term(("attention",)),)
    assert [len(term.words) > 1 for term in query.required] == [True]


def test_function_words_never_select_unless_there_is_nothing_else() -> None:
    assert parse("what is the attention").words == (Term(("attention",)),)
    assert parse("what is the").words == (Term(("what",)), Term(("is",)), Term(("the",)))
    assert parse("the author:vaswani").words == ()


def test_characters_of_unspaced_scripts_are_wanted_in_pairs() -> None:
    pairs = (Term(("知", "识")), Term(("识", "图")), Term(("图", "谱")))
    assert parse("知识图谱").words == pairs


@pytest.mark.parametrize("word", ["AND", "OR", "NOT", "NEAR", "and", "near"])
def test_operators_are_words(word: str) -> None:
    assert parse(f"lidar {word} slam").words == parse(f"lidar {word.lower()} slam").words
    assert parse(word).words == (Term((word.lower(),)),)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("author:lecun", Name("author", "lecun")),
        ('AUTHOR:"Yann LeCun"', Name("author", "Yann LeCun")),
        ("author:“Yann LeCun”", Name("author", "Yann LeCun")),
        ('venue:"the “best” one"', Name("venue", "the “best” one")),
        ('author:"unclosed name', Name("author", "unclosed name")),
        ("-venue:nature author:x", Name("venue", "nature", excluded=True)),
        ("year:2019..2021", Name("year", "2019..2021")),
        ("keyword:知识图谱", Name("keyword", "知识图谱")),
    ],
)
def test_fields_take_bare_and_quoted_values(text: str, name: Name) -> None:
    assert name in parse(text).names


def test_title_words_are_kept_apart_from_the_others() -> None:
    query = parse('title:"deep learning" title:net* -title:review vision')
    assert query.titles == (Term(("deep", "learning")), Term(("net",), prefix=True))
    assert query.refused_titles == (Term(("review",), excluded=True),)
    assert query.words == (Term(("vision",)),)


def test_a_field_inside_quotes_or_words_is_no_field() -> None:
    for text in ('"say author:x"', "co-author:x", "Author: somebody", "unknown:x"):
        assert parse(text).names == ()


@pytest.mark.parametrize("text", ["", "  ", "()*&^%", '""', "☃", "***"])
def test_nothing_to_find_says_what_works(text: str) -> None:
    with pytest.raises(InvalidRequest, match="no word to search for.*author:") as refused:
        parse(text)
    assert refused.value.code == "invalid_query"


@pytest.mark.parametrize("text", ["-draft", '-"to do"', "-author:x", "-title:x -year:2019"])
def test_only_exclusions_say_what_is_missing(text: str) -> None:
    with pytest.raises(InvalidRequest, match="only excluded words"):
        parse(text)


@pytest.mark.parametrize("text", ['author:""', 'author:" " deep', 'title:"..."', "title:+"])
def test_a_field_without_a_value_is_named(text: str) -> None:
    with pytest.raises(InvalidRequest, match="has no"):
        parse(text)


SYNTAX = st.lists(
    st.one_of(
        st.sampled_from([f"{field}:" for field in FIELDS]),
        st.sampled_from(['"', "*", "-", "(", ")", "^", "+", ":", "{", "}", "..", ",", "'", "\\"]),
        st.sampled_from(
            ["AND", "OR", "NOT", "NEAR(", "NEAR/2", "2019", "deep", "深", "é", "%", "_"]
        ),
        st.sampled_from([" ", "\0", "\ud800", "が", "ถ", "हि", "㍿", "“", "„", "\n"]),
        st.characters(),
    ),
    max_size=30,
).map("".join)


@given(st.one_of(st.text(max_size=60), SYNTAX))
def test_every_text_is_understood_or_refused(text: str) -> None:
    try:
        query = parse(text)
    except InvalidRequest as refused:
        assert refused.code == "invalid_query"
        return
    assert query.terms or query.names
    assert all(any(map(str.isalnum, "".join(term.words))) for term in query.terms)
