"""Scores how well a record answers a question, by the rarity of its words and by its best passage.

    R = sum over the words of idf * tf * 2.5 / (tf + 1.5 * (.25 + .75 * length / mean length))
    C = at the best position: sum over the words of idf / (1 + distance / 40), as a share
    score = R * C, plus part of the scores of the records before and after in the same thread

A word counts with its inflected forms; title and actor words count as near every position. C is
taken at occurrences of the rarest other word, or of the rarest two if the question has 4 or more
words. Relative length is capped at 2. Distances are code points of folded text. The constants were
tuned on public collections, where small changes to them hardly matter. See also docs/ranking.md.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Final, NamedTuple

from evidence.cached import cached_property
from evidence.limits import CONTRACT
from evidence.question import Needle, Term, needle, spelling
from evidence.work import checked

SATURATION: Final = 1.5
LENGTH_SHARE: Final = 0.75
LONGEST: Final = 2.0
NEAR_CHARS: Final = 40
TITLE_WEIGHT: Final = 2
#: The share of its score that a neighbour one or two records away in the thread adds.
NEIGHBOURS: Final = {1: 0.5, 2: 0.25}
#: The largest relative error that a different order of summation may cause.
ROUNDING: Final = 1e-9
#: Occurrences of one word in one text that are counted, at most.
PLACES_MAX: Final = 64
#: From this many passages on, a value counts as the share `CHUNKED_LENGTH` of a mean record: its
#: passages are ranked, not all of it.
CHUNKED_PASSAGES: Final = CONTRACT.inline_bytes // CONTRACT.passage_stride_chars + 1
CHUNKED_LENGTH: Final = 0.8
#: Words that a passage adds to a long value: a word has six characters with its space.
PASSAGE_WORDS: Final = CONTRACT.passage_stride_chars // 6
#: What the deadline is checked for, and the texts that are ranked between two checks.
RANKING, TEXTS_UNCHECKED = "ranking records", 16
#: A first page of other servers' hits ends, after the third, where coverage falls below this share
#: of the first.
TAIL: Final = 0.2
#: The factor on the score of a record whose event time is in the period of the question.
PERIOD_LIFT: Final = 1.3


@dataclass(frozen=True)
class Group:
    """A word of the question with all forms that count as it.

    `forms` are further spellings: inflected, with other umlauts, or `repaired` if the word itself
    occurs nowhere in scope. `count` is the number of records in scope that hold one of them.
    """

    word: Term
    forms: tuple[Term, ...] = ()
    repaired: bool = False
    count: int = 0
    idf: float = 0.0

    @property
    def spellings(self) -> tuple[Term, ...]:
        return (self.word, *self.forms)

    @cached_property
    def label(self) -> str:
        """The word as it was typed."""
        return spelling(self.word)

    @cached_property
    def needles(self) -> tuple[Needle, ...]:
        """What to look for in folded text."""
        return tuple(map(needle, self.spellings))


def idf(records: int, count: int) -> float:
    """The weight of a word that `count` of `records` hold; 0 if none does."""
    return math.log(1 + (records - count + 0.5) / (count + 0.5)) if count else 0.0


class Text(NamedTuple):
    """A field or a passage of a record, folded.

    `weight` multiplies its occurrences. Words of an `everywhere` text count as near every position.
    Of the `part` passages of long values, each group counts the one with its most occurrences.
    `possible` is a bit mask of the groups that may occur in the text; -1 is all.
    """

    folded: str
    weight: int = 1
    everywhere: bool = False
    part: bool = False
    possible: int = -1


class Score(NamedTuple):
    """The score of one record; `held` are the numbers of the groups it holds.

    `worths` has, for each text, the summed idf of its groups.
    """

    value: float
    held: frozenset[int]
    worths: Sequence[float] = ()


class Ranker:
    """Scores records; `mean` is the mean length of a record of the grant, words."""

    def __init__(self, groups: Sequence[Group], mean: float) -> None:
        self.groups = groups
        self.mean = mean or 1.0
        self._idfs = [group.idf for group in groups]
        self.total = sum(self._idfs) or 1.0
        most = max((group.idf for group in groups), default=0.0)
        # A word that occurs nowhere counts as much as the rarest that does.
        self._coverage_weights = [group.idf if group.count else most or 1.0 for group in groups]
        self._coverage_whole = sum(self._coverage_weights)
        #: Numbers of the groups that occur, as bits.
        self._occurring = sum(1 << number for number, group in enumerate(groups) if group.count)
        self._needles: dict[int, list[tuple[str, int, re.Pattern[str] | None, int]]] = {}
        self._unchecked = TEXTS_UNCHECKED
        order = sorted(range(len(groups)), key=lambda index: -groups[index].idf)
        self._rarest = [number for number in order if groups[number].idf]
        self.centres = 2 if len(groups) >= 4 else 1

    @property
    def best(self) -> float:
        """The approximate score of a record that holds every group often and in one place."""
        return (1 + SATURATION) * self.total

    def coverage(self, present: Iterable[int]) -> float:
        """The share of the question a record holds, 0 to 1."""
        weights, whole = self._coverage_weights, self._coverage_whole
        return sum([weights[number] for number in present]) / whole if whole else 0.0

    def score(self, texts: Sequence[Text], length: int, least: float = 0.0) -> Score:
        """The score of a record of `length` words with these texts.

        A score below `least` may be overestimated, but stays below `least`.
        """
        counts, parts = dict[int, int](), dict[int, int]()
        free, worths, idfs = set[int](), list[float](), self._idfs
        placed = list[tuple[float, dict[int, list[int]]]]()
        for folded, weight, everywhere, part, possible in self._checked(texts):
            places = self.places(folded, possible)
            if not places:
                worths.append(0.0)
                continue
            worth = sum([idfs[number] for number in places])
            worths.append(worth)
            for number, starts in places.items():
                count = len(starts) * weight
                if not part:
                    counts[number] = counts.get(number, 0) + count
                elif count > parts.get(number, 0):
                    parts[number] = count
            if everywhere:
                free.update(places)
            else:
                placed.append((worth, places))
        for number, count in parts.items():
            counts[number] = counts.get(number, 0) + count
        present = frozenset(counts)
        if not present:
            return Score(0.0, present, worths)
        words = self._weight(counts, length)
        near = self._nearness(present, free, placed, least / (words or 1.0))
        return Score(words * near, present, worths)

    def places(self, folded: str, possible: int = -1) -> dict[int, list[int]]:
        """The starts of each group's occurrences in a folded text, ascending."""
        places: dict[int, list[int]] = {}
        padded = f" {folded} "
        find = padded.find
        bits = possible & self._occurring
        for word, step, pattern, number in self._needles.get(bits) or self._looked_for(bits):
            position = find(word)
            if position < 0:
                continue
            starts = list[int]()
            while position >= 0 and len(starts) < PLACES_MAX:
                if pattern is None or pattern.match(padded, position):
                    starts.append(position)
                position = find(word, position + step)
            if number in places:
                places[number] = sorted(places[number] + starts)[:PLACES_MAX]
            elif starts:
                places[number] = starts
        return places

    def damp(self, length: int) -> float:
        """The saturation term of `length` words: the more there are, the less a word counts."""
        relative = length / self.mean
        long = relative if relative < LONGEST else LONGEST
        return SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * long)

    def length_of(self, passages: int) -> int:
        """The words that a long value counts as."""
        chunked = passages >= CHUNKED_PASSAGES
        return int(CHUNKED_LENGTH * self.mean) if chunked else passages * PASSAGE_WORDS

    def _looked_for(self, bits: int) -> list[tuple[str, int, re.Pattern[str] | None, int]]:
        """The needles of some groups: (text, where the next may begin, pattern, group)."""
        needles = self._needles[bits] = [
            (word, len(word) - 1, pattern, number)
            for number, group in enumerate(self.groups)
            if bits >> number & 1
            for word, pattern in group.needles
        ]
        return needles

    def _checked(self, texts: Sequence[Text]) -> Iterable[Text]:
        """The texts of a record; the deadline is checked before more than `TEXTS_UNCHECKED`."""
        self._unchecked += len(texts)
        if self._unchecked <= TEXTS_UNCHECKED:
            return texts
        self._unchecked = (len(texts) - 1) % TEXTS_UNCHECKED + 1
        return checked(texts, RANKING, TEXTS_UNCHECKED)

    def _weight(self, counts: Mapping[int, int], length: int) -> float:
        damp = self.damp(length)
        return sum(
            [
                self._idfs[number] * count * (1 + SATURATION) / (count + damp)
                for number, count in sorted(counts.items())
            ]
        )

    def _nearness(
        self,
        present: frozenset[int],
        free: set[int],
        placed: Sequence[tuple[float, Mapping[int, Sequence[int]]]],
        least: float,
    ) -> float:
        """C: the share of the question near one position in the record, 0 to 1.

        A share below `least` may be overestimated, but stays below `least`.
        """
        idfs, total = self._idfs, self.total
        best = near = sum([idfs[number] for number in free])
        bounds = [
            near + worth - sum([idfs[number] for number in free if number in places])
            for worth, places in placed
        ]
        most = max(bounds, default=near) / total * (1 + ROUNDING)
        if most < least * (1 - ROUNDING):
            return most
        apart = present - free
        centres = [number for number in self._rarest if number in apart][: self.centres]
        best_first = sorted(zip(bounds, placed), key=itemgetter(0), reverse=True)
        for bound, (_, places) in best_first:
            if bound <= best:
                break
            weighted = [(idfs[number], at) for number, at in places.items() if number not in free]
            for centre in chain.from_iterable(places.get(number, ()) for number in centres):
                if best >= bound:
                    break
                nearness = near
                for weight, at in weighted:
                    away = _distance(at, centre) if at[1:] else abs(at[0] - centre)
                    nearness += weight / (1 + away / NEAR_CHARS)
                if nearness > best:
                    best = nearness
        return best / total


def with_neighbours(
    own: Mapping[int, float], near: Mapping[int, Mapping[int, int]]
) -> dict[int, float]:
    """Scores with what neighbours add; `near` maps a record to {neighbour: distance}."""
    if not near:
        return dict(own)
    return {
        record: value
        + sum(
            NEIGHBOURS[away] * own.get(neighbour, 0.0)
            for neighbour, away in near.get(record, {}).items()
        )
        for record, value in own.items()
    }


def _distance(starts: Sequence[int], centre: int) -> int:
    """The distance from an offset to the nearest of ascending offsets."""
    index = bisect_left(starts, centre)
    if index == len(starts):
        return centre - starts[-1]
    after = starts[index] - centre
    return min(after, centre - starts[index - 1]) if index else after
