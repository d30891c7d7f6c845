"""Queries by how many records hold their words, chosen from the corpus and the same for its seed.

Bounds are those of 100,000 records and grow and shrink with the corpus, but for rare words, which
are rare in any.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.corpus import SEED

BASE = 100_000
RARE = (5, 30)
MEDIUM = (200, 1_000)
PAIRED = (1_000, 10_000)
COMMON_SHARES = (0.05, 0.20)
COUNTS = {"rare": 60, "medium": 80, "two": 60, "common": 40}
SHORTEST = 3  # characters of a word that is asked for


@dataclass(frozen=True, slots=True)
class Queries:
    """`two` are pairs of words that must both occur; `common` words stand beside the mix."""

    rare: tuple[str, ...]
    medium: tuple[str, ...]
    two: tuple[str, ...]
    common: tuple[str, ...]

    @property
    def mix(self) -> list[str]:
        """Rare, medium and two, spread evenly, so that any part of the list is a fair mix."""
        placed = [
            ((place + 0.5) / len(group), query)
            for group in (self.rare, self.medium, self.two)
            for place, query in enumerate(group)
        ]
        return [query for _, query in sorted(placed)]


def choose(counted: Counter[str], records: int, seed: int = SEED) -> Queries:
    """The queries of a corpus of so many records, given in how many each word occurs.

    Raises `ValueError` where the corpus has too few words of a class.
    """
    rng = random.Random(seed)
    words = sorted(word for word in counted if len(word) >= SHORTEST)
    scale = records / BASE

    def between(bounds: Sequence[float], count: int) -> list[str]:
        least, most = bounds
        return rng.sample([word for word in words if least <= counted[word] <= most], count)

    rare = between(RARE, COUNTS["rare"])
    medium = between([bound * scale for bound in MEDIUM], COUNTS["medium"])
    paired = between([bound * scale for bound in PAIRED], 2 * COUNTS["two"])
    common = between([share * records for share in COMMON_SHARES], COUNTS["common"])
    two = (" ".join(pair) for pair in zip(paired[::2], paired[1::2]))
    return Queries(tuple(rare), tuple(medium), tuple(two), tuple(common))
