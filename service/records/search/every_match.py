"""All matches of a question in one exact order, if the engine ranks records itself.

The engine gives each record a bound that its score does not exceed. Records are read in the order
of these bounds, until none that is left can be among the first.
"""

from collections.abc import Callable, Iterable
from heapq import merge, nlargest
from itertools import islice
from typing import Final

from evidence.limits import BUDGETS
from evidence.page_order import FIRST as BEST
from evidence.page_order import Standard, standard
from service.records.engine.matches import Match, Matches
from service.records.search.blocks import NOTHING, Ranked, Reader, in_order

#: Scores that differ by less may be equal in the order of a page.
SLACK: Final = 2e-9
#: More bounds than records are read.
BOUNDS_MOST: Final = 2 * BUDGETS.records_scored


class EveryMatch:
    """The matches of a question; with the number of its `words` if more than scores orders them.

    Records are read `at_once`, then twice as many each time.
    """

    def __init__(self, reader: Reader, matches: Matches, words: int | None, at_once: int) -> None:
        self.matches, self.reader, self.standard = matches, reader, Standard(0.0, 0.0, 0)
        self._words, self._at_once = words, at_once
        self._by_seq = {match.seq: match for match in matches.best}
        self._scores = dict[int, float]()

    def first(self, most: int) -> list[Ranked] | None:
        """The first `most` records in order; None if that takes too many texts."""
        if not self._read_first(max(most, BEST if self._words else 0), _by_score):
            return None
        value: Callable[[Match, float], float] = _by_score
        if self._words:
            self.standard = self._standard_of(self._words)
            value = _by_standard(self.standard)
            if not self._read_first(most, value):
                return None
        values = {seq: value(self._by_seq[seq], score) for seq, score in self._scores.items()}
        ranked = {seq: Ranked(seq, self.reader.stream_of(seq), NOTHING, 0.0) for seq in values}
        return in_order(self.reader, ranked, values, most)[:most]

    def _standard_of(self, words: int) -> Standard:
        ranker = self.reader.ranker
        numbers = {
            seq: [n for n in range(len(ranker.groups)) if self._by_seq[seq].groups >> n & 1]
            for seq in self._scores
        }
        coverages = {seq: ranker.coverage(groups) for seq, groups in numbers.items()}
        return standard(self._scores, coverages, words)

    def _read_first(self, most: int, value: Callable[[Match, float], float]) -> bool:
        """Reads records until no other can be among the first; False if they are too many."""
        size, least = self._at_once, 0.0
        best = self.matches.best
        parts = ([match for match in best if match.names_actor == actor] for actor in (0, 1))
        order = merge(*parts, key=lambda match: -value(match, match.bound))
        while batch := list(islice(order, size)):
            least, size = self._least(most, value), 2 * size
            likely = [match for match in batch if value(match, match.bound) >= least]
            if not self._read(match for match in likely if match.seq not in self._scores):
                return False
            if len(likely) < len(batch):
                break
        return all(bound < self._least(most, value) for bound in self._rest(value))

    def _least(self, most: int, value: Callable[[Match, float], float]) -> float:
        """What a record must be worth to be among the first."""
        values = (value(self._by_seq[seq], score) for seq, score in self._scores.items())
        first = nlargest(most, values)
        return first[-1] - SLACK if len(first) == most else -1.0

    def _rest(self, value: Callable[[Match, float], float]) -> Iterable[float]:
        """The bounds of records that the engine left out."""
        for names_actor, bound in enumerate((self.matches.rest, self.matches.rest_actor)):
            if bound:
                yield value(Match(0, bound, 0, names_actor, ()), bound)

    def _read(self, matches: Iterable[Match]) -> bool:
        """Computes the scores of some records; False if that is too much, or a bound is wrong."""
        unread = list(matches)
        bounds = {match.seq: match.bound for match in unread}
        if len(self._scores) + len(bounds) > BUDGETS.records_scored:
            return False
        self.reader.candidates.add_passages(unread)
        scores = self.reader.scores(list(bounds))
        self._scores |= scores
        return all(scores.get(seq, 0.0) <= bound + SLACK for seq, bound in bounds.items())


def _by_score(match: Match, score: float) -> float:
    return score


def _by_standard(standard: Standard) -> Callable[[Match, float], float]:
    def value(match: Match, score: float) -> float:
        return standard.value(score, None, names_actor=bool(match.names_actor))

    return value
