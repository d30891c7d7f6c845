"""Words of a value count once, however long it is, and its length sets no number of readings."""

import random
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evidence.fold import fold
from evidence.language import is_repairable, shortened
from evidence.word_parts import is_number
from service.records.writing.vocabulary import (
    MOST_WORDS,
    RUN_CHARS,
    ending_key,
    key_of,
    keys_of,
    words_of,
)

WORDS = ("harbour", "1", "ü", "海", "港", "の", "pier")


@pytest.mark.parametrize("words", [WORDS, WORDS[:3]])
def test_a_long_text_of_few_words_is_gone_through_once(words: tuple[str, ...]) -> None:
    draw = random.Random(7)
    run = [draw.choice(words) + draw.choice(("", "x")) for _ in range(RUN_CHARS)]
    ((found, length),) = words_of(" ".join(run))
    ((short, few),) = words_of(" ".join(run[:1_000]))
    assert (length, few) == (len(run), 1_000) and found == short
    assert ("海港" in found) == ("海" in words)


def test_many_different_words_are_parted_and_each_counts_once() -> None:
    run = [f"word{number}" for number in range(3 * MOST_WORDS)] * 2
    parts = list(words_of(" ".join(run)))
    assert len(parts) > 2 and sum(length for _, length in parts) == len(run)
    assert sum(len(found) for found, _ in parts) == 3 * MOST_WORDS
    assert set().union(*(found for found, _ in parts)) == set(run)


def test_adjacent_characters_are_words_where_a_run_ends_too() -> None:
    run = [chr(0x4E00 + number % 5_000) for number in range(RUN_CHARS)]
    found = set().union(*(one for one, _ in words_of(" ".join(run))))
    assert found >= {first + second for first, second in pairwise(run)}


@given(st.text(st.characters(codec="utf-8"), max_size=50).map(fold))
@example("winterabend")
@example("schlüsselbund")
@example("abc1")
def test_a_word_has_the_keys_of_its_shortened_forms_and_endings(text: str) -> None:
    for word in text.split():
        if 5 <= len(word) <= 48 and is_repairable(word) and not is_number(word):
            endings = {word[start:] for start in range(4, len(word) - 3)}
            assert keys_of(word) == {*map(key_of, shortened(word)), *map(ending_key, endings)}
