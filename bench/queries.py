"""Questions over the corpus, fixed by a seed, with words as frequent as in real questions.

The number of words in a question and the frequency of each come from quantiles of the questions of
public English collections with equal weights: chats, abstracts and encyclopedia passages. A word's
share is the share of the records that contain one of its inflected forms.
"""

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from bench.corpus import FUNCTION_WORDS, SEED

#: Twenty quantiles of the shares of content words, and ten of the number of words in a question.
SHARES = (
    *(0.0003, 0.001, 0.003, 0.004, 0.007, 0.01, 0.014, 0.017, 0.022, 0.028),
    *(0.033, 0.045, 0.055, 0.075, 0.09, 0.115, 0.13, 0.17, 0.25, 0.46),
)
CONTENT_WORDS = (3, 4, 5, 5, 6, 6, 7, 9, 10, 13)
FUNCTION_WORDS_ASKED = (2, 3, 4, 4, 5, 6, 6, 7, 8, 10)

RARE_SHARE = 0.01
COMMON_SHARES = (0.05, 0.20)
QUESTIONS, COMMON = 100, 40
SHORTEST = 3  # characters of a word in a question
NEAR = 1.2  # a word may be this many times as frequent, or as rare, as it should be

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Queries:
    """`natural` questions; `rare` ones, of words in few records; `common` single words."""

    natural: tuple[str, ...]
    rare: tuple[str, ...]
    common: tuple[str, ...]

    @property
    def mix(self) -> list[str]:
        """Natural and rare questions, alternating."""
        return list(chain.from_iterable(zip(self.natural, self.rare, strict=True)))


def choose(counted: Counter[str], records: int, seed: int = SEED) -> Queries:
    """The queries for a corpus of `records`, given the number of records with each word.

    Raises `ValueError` if the corpus has too few common words.
    """
    rng = random.Random(seed)
    words = sorted(
        (word for word in counted if len(word) >= SHORTEST and word not in FUNCTION_WORDS),
        key=lambda word: (counted[word], word),
    )
    shares = [counted[word] / records for word in words]
    weights = [1 / place for place in range(1, len(FUNCTION_WORDS) + 1)]

    def between(least: float, most: float) -> list[str]:
        return words[bisect_left(shares, least) : bisect_right(shares, most)]

    def word_of(share: float) -> str:
        nearest = words[min(bisect_left(shares, share), len(words) - 1)]
        return rng.choice(between(share / NEAR, share * NEAR) or [nearest])

    def questions(wanted: Sequence[float], spoken: Sequence[int]) -> Iterator[str]:
        contents, functions = _dealt(rng, CONTENT_WORDS), _dealt(rng, spoken)
        decks = [_dealt(rng, wanted) for _ in range(max(CONTENT_WORDS))]
        for _ in range(QUESTIONS):
            content = dict.fromkeys(word_of(next(deck)) for deck in decks[: next(contents)])
            asked = [*content, *rng.choices(FUNCTION_WORDS, weights, k=next(functions))]
            rng.shuffle(asked)
            yield " ".join(asked)

    natural = tuple(questions(SHARES, FUNCTION_WORDS_ASKED))
    rare = tuple(questions([share for share in SHARES if share <= RARE_SHARE], [0]))
    return Queries(natural, rare, tuple(rng.sample(between(*COMMON_SHARES), COMMON)))


def _dealt(rng: random.Random, cards: Sequence[T]) -> Iterator[T]:
    """Yields the cards repeatedly, each time in a new order, so that any run is a fair sample."""
    while True:
        yield from rng.sample(cards, len(cards))
