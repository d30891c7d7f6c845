"""How records are scored by where the words of a question are in their texts."""

from hypothesis import example, given
from hypothesis import strategies as st

from evidence.question import Term
from evidence.ranking import PLACES_MAX, Group, Ranker, Text, idf

WORDS = "anna budget ceiling draft".split()
RECORDS = 1_000
MEAN = 20.0

#: Texts of one record: words of the question among others.
bodies = st.lists(st.sampled_from([*WORDS, "the", "of"]), min_size=1, max_size=60).map(" ".join)
texts = st.lists(
    st.builds(Text, bodies, st.sampled_from([1, 2]), st.booleans(), st.booleans()),
    min_size=1,
    max_size=4,
)
counts = st.lists(st.integers(1, RECORDS), min_size=len(WORDS), max_size=len(WORDS))


def ranker(*numbers: int) -> Ranker:
    groups = [
        Group(Term((word,)), count=number, idf=idf(RECORDS, number))
        for word, number in zip(WORDS, numbers)
    ]
    return Ranker(groups, MEAN)


@example(
    [Text("anna ceiling"), Text("anna draft", 1, True)],
    [Text("anna anna budget")],
    [116, 1, 9, 191],
)
@given(texts, texts, counts)
def test_a_score_is_exact_or_below_the_one_it_cannot_reach(
    one: list[Text], other: list[Text], numbers: list[int]
) -> None:
    found = ranker(*numbers)
    least = found.score(other, 30).value
    exact, given = found.score(one, 30), found.score(one, 30, least)
    assert given.held == exact.held
    assert given == exact or exact.value <= given.value < least


def test_words_of_the_body_count_although_the_rarest_is_in_the_title() -> None:
    found = ranker(2, 100, 100, 100)
    title = Text("anna", 2, True)
    near = found.score([title, Text("budget ceiling")], 20)
    far = found.score([title, Text("budget " + "the " * 100 + "ceiling")], 20)
    alone = found.score([title, Text("the of")], 20)
    assert near.value > far.value > alone.value


def test_words_are_worth_more_the_nearer_they_are() -> None:
    found = ranker(50, 50, 50, 50)
    scores = [
        found.score([Text(f"anna {'the ' * between}budget")], 100).value for between in range(0, 50)
    ]
    assert scores == sorted(scores, reverse=True) and len(set(scores)) == len(scores)


def test_occurrences_of_a_word_in_one_text_count_up_to_a_limit() -> None:
    found = ranker(2, 100, 100, 100)
    scores = [
        found.score([Text(" ".join(["anna"] * count), 1, False, part)], 500).value
        for count in (PLACES_MAX - 1, PLACES_MAX, PLACES_MAX + 1, 9 * PLACES_MAX)
        for part in (False, True)
    ]
    assert scores[0] == scores[1] < scores[2]
    assert len({*scores[2:]}) == 1
