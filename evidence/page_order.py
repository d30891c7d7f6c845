"""Orders the hits of a page by words, closeness in meaning, and whether the query names the actor.

    S = L / best * min(1, C / .4) + w * (meaning + 1.5 if the record's actor is named) / 6

`L` is the score of a record by its words (`evidence.ranking`, with its neighbours and the period),
`best` the highest of the first block and `C` the highest coverage among its first ten. `w` grows
with the number of words `n`: (n - 2) / 2, or (n - 1) / 2 if C is below .4, between 0 and 1. So a
single word is ranked by itself, and two words that a record holds too. `meaning` is how much nearer
a record is to the question than other records of the grant, in standard deviations, and part of
what its neighbours in the thread have; 0 without vectors, where the actor is worth 1.2. See also
docs/ranking.md.
"""

from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

#: A record, by whatever names it.
K = TypeVar("K", bound=Hashable)
#: The coverage from which words alone are good evidence.
ENOUGH: Final = 0.4
#: What it is worth, in deviations, that a word of the question names the record's actor: with
#: vectors, and without. Questions about what somebody did not say lose by it, without them more.
ACTOR_BONUS: Final = {True: 1.5, False: 1.2}
#: The deviations that weigh as much as the best score by words.
DEVIATIONS: Final = 6.0
#: A first page ends, after the third hit, where the value falls below this share of the best.
TAIL: Final = 0.1
#: The share of its own nearness, if that is above 0, that a neighbour in the thread adds.
NEIGHBOURS: Final = {1: 0.3, 2: 0.15}
#: Related records among ten places of a page, unless no record holds a word.
RELATED: Final = 3
#: The first records, whose best coverage counts.
FIRST: Final = 10
#: Significant digits of the highest score, so that it fits into a cursor.
DIGITS: Final = 6


class Standard(NamedTuple):
    """What the records of all blocks are measured by: figures of the first block."""

    best: float
    coverage: float
    words: int

    def value(self, score: float, meaning: float | None, *, names_actor: bool = False) -> float:
        """The value S that a page is ordered by; `meaning` is None without vectors."""
        bonus = ACTOR_BONUS[meaning is not None] if names_actor else 0.0
        share, weight = _weights(self)
        by_words = score / self.best * share if self.best else 0.0
        return by_words + weight * (bonus + (meaning or 0.0)) / DEVIATIONS


@lru_cache(maxsize=8)
def _weights(standard: Standard) -> tuple[float, float]:
    """The weights of the words and of everything else, 0 to 1."""
    few = 2 if standard.coverage >= ENOUGH else 1
    weight = max(0.0, min(1.0, (standard.words - few) / 2)) if standard.best else 1.0
    return min(1.0, standard.coverage / ENOUGH), weight


#: The standard if no record holds a word.
NOTHING_MATCHES: Final = Standard(0.0, 0.0, 0)


def standard(scores: Mapping[K, float], coverages: Mapping[K, float], words: int) -> Standard:
    """The standard that the scores and coverages of a first block set."""
    ordered = sorted(scores.values(), reverse=True)
    if not ordered:
        return NOTHING_MATCHES
    least = ordered[:FIRST][-1]
    coverage = max(coverages[record] for record, score in scores.items() if score >= least)
    return Standard(float(f"{ordered[0]:.{DIGITS}g}"), round(coverage, 2), words)


def with_median(nearness: Mapping[K, float], records: Iterable[K]) -> dict[K, float]:
    """The nearness of some records too that have no vector: the median of those of them that have.

    So the newest ones do not sink.
    """
    known = list(records)
    in_middle = sorted(nearness[record] for record in known if record in nearness) or [0.0]
    return {**dict.fromkeys(known, in_middle[len(in_middle) // 2]), **nearness}


def related_most(limit: int) -> int:
    """The related records on a page of so many places that has others too."""
    return max(1, RELATED * limit // 10)


def with_neighbours(
    nearness: Mapping[int, float], near: Mapping[int, Mapping[int, int]]
) -> dict[int, float]:
    """Nearness above 0, with what neighbours add; `near` as in `evidence.ranking`."""
    return {
        record: max(0.0, own)
        + sum(
            NEIGHBOURS[away] * max(0.0, nearness.get(neighbour, 0.0))
            for neighbour, away in near.get(record, {}).items()
        )
        for record, own in nearness.items()
    }
