"""Words of a value count once, however long it is, and its length sets no number of readings."""

import random
from itertools import pairwise

import pytest

from service.records.writing.vocabulary import MOST_WORDS, RUN_CHARS, words_of

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
