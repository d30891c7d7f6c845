"""The words of a value count once, however long it is."""

import random

import pytest

from service.records.vocabulary import PART_CHARS, words_of

WORDS = ("harbour", "1", "ü", "海", "港", "の", "pier")


@pytest.mark.parametrize("words", [WORDS, WORDS[:3]])
def test_the_words_of_a_long_text_are_those_of_its_parts(words: tuple[str, ...]) -> None:
    draw = random.Random(7)
    run = [draw.choice(words) + draw.choice(("", "x")) for _ in range(PART_CHARS)]
    text, short = " ".join(run), " ".join(run[:1_000])
    parts = list(words_of(text))
    assert len(parts) > 2 and sum(length for _, length in parts) == len(run)
    assert sum(len(found) for found, _ in parts) == len(set().union(*(one for one, _ in parts)))
    ((found, length),) = words_of(short)
    assert length == 1_000 and found == set().union(*(one for one, _ in parts))
    assert ("海港" in found) == ("海" in words)
