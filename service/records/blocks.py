"""Stage 2 of search: candidates and their neighbours, read and in the order of their scores."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from evidence.fold import fold
from evidence.limits import BUDGETS, CONTRACT
from evidence.pointer import find, searched_text
from evidence.question import Question
from evidence.ranking import PERIOD_LIFT, TITLE_WEIGHT, Ranker, Score, Text, with_neighbours
from service.records.candidates import Candidates, Passages
from service.records.engine import Stored
from service.records.texts import text_of
from service.records.values import EARLIEST
from service.records.view import StreamView

#: Roles whose words count as near every place of a record.
EVERYWHERE: Final = frozenset({"primary-title", "actor"})
#: The length of a value in chunk rows, in mean records: its passages are ranked, not all of it.
CHUNKED_LENGTH: Final = 0.8
#: Characters of a word with its space, to estimate the length of a text without folding it.
WORD_CHARS: Final = 6


@dataclass(slots=True)
class Ranked:
    """A record with its score.

    `passages` are the starts read of long fields, by field; `possible` the groups that it may hold,
    as bits.
    """

    stream: StreamView
    record: Stored
    score: Score
    value: float
    passages: dict[str, list[int]]
    possible: int

    @property
    def newest_first(self) -> tuple[int, str]:
        """The sort key that puts newer event times first, records without one last, then ids."""
        at = self.stream.event_time(self.record)
        return -(EARLIEST if at is None else at), self.record.record_key


class Reader:
    """Reads records for a ranker: their short fields whole, of long ones the likely passages."""

    def __init__(
        self, candidates: Candidates, streams: dict[int, StreamView], ranker: Ranker
    ) -> None:
        self._candidates, self._streams, self._ranker = candidates, streams, ranker
        self._snapshot = candidates.snapshot

    def load(self, seqs: Sequence[int]) -> dict[int, Stored]:
        """Some records."""
        return self._snapshot.load(seqs) if seqs else {}

    def ranked(self, seqs: Sequence[int]) -> dict[int, Ranked]:
        """Those of some records that hold a group of the question."""
        records = self.load(seqs)
        passages = self._candidates.passages_of(records)
        reads = (self._reads(record, passages[seq]) for seq, record in records.items())
        self._snapshot.ahead(*(read for each in reads for read in each))
        found = {}
        for seq, record in records.items():
            stream = self._streams.get(record.stream)
            if stream is not None:
                found[seq] = self._score(stream, record, passages[seq])
        return found

    def _score(self, stream: StreamView, record: Stored, known: Passages) -> Ranked:
        texts, words, passages = list[Text](), 0, dict[str, list[int]]()
        possible = self._candidates.possible(record.seq)
        titled = stream.roles.get("primary-title")
        everywhere = {stream.roles.get(role) for role in EVERYWHERE}
        for ordinal, name in stream.searchable.items():
            weight = TITLE_WEIGHT if name == titled else 1
            value = searched_text(find(record.data, name))
            if value and len(value) <= CONTRACT.passage_chars:
                folded = fold(value)
                words += folded.count(" ") + 1
                texts.append(Text(folded, weight, name in everywhere, False, possible))
            elif value or name in record.big:
                starts = passages[name] = self._likely(record.seq, ordinal, known)
                if value:
                    words += len(value) // WORD_CHARS
                else:
                    words += int(CHUNKED_LENGTH * self._ranker.mean)
                text = text_of(self._snapshot, record, name, ordinal)
                texts += [
                    Text(
                        fold(text.read(start, start + CONTRACT.passage_chars)),
                        weight,
                        part=True,
                        possible=possible,
                    )
                    for start in starts
                ]
        score = self._ranker.score(texts, words)
        return Ranked(stream, record, score, score.value, passages, possible)

    def _reads(self, record: Stored, known: Passages) -> Iterator[Callable[[], str]]:
        """Reads of the passages of large values that rows were seen of."""
        stream = self._streams.get(record.stream)
        if stream is None or not record.big:
            return
        for ordinal, name in stream.searchable.items():
            if name in record.big:
                text = text_of(self._snapshot, record, name, ordinal)
                groups, most = self._ranker.groups, BUDGETS.passages_ranked
                for start in self._candidates.starts(known, ordinal, groups, most):
                    yield partial(text.read, start, start + CONTRACT.passage_chars)

    def _likely(self, seq: int, ordinal: int, known: Passages) -> list[int]:
        """Where the passages of a long value start that hold most of the rarest words."""
        most = BUDGETS.passages_ranked
        seen = self._candidates.starts(known, ordinal, self._ranker.groups, most)
        if seen:
            return seen
        groups = sorted(
            (group for group in self._ranker.groups if group.count), key=lambda one: -one.idf
        )
        spelled = [group.spellings for group in groups]
        starts = dict[int, None]()
        for wanted in [spelled[:size] for size in range(min(3, len(spelled)), 1, -1)] + [
            [one] for one in spelled
        ]:
            room = most - len(starts)
            if room <= 0:
                break
            found = self._snapshot.passages_with(seq, ordinal, wanted, room)
            starts.update(dict.fromkeys(found))
        return list(starts)[:most]


def in_order(
    ranked: dict[int, Ranked],
    neighbours: dict[int, dict[int, int]],
    question: Question,
    ranker: Ranker,
) -> list[int]:
    """Records by their score with what neighbours and the period of the question add.

    Ties go to the newer event time, then to the record id.
    """
    groups, whole = len(ranker.groups), ranker.best
    own = {seq: one.value for seq, one in ranked.items()}
    lifted = with_neighbours(own, neighbours)
    for seq, one in ranked.items():
        at = one.stream.event_time(one.record)
        period = question.period
        if period is not None and at is not None and period.since <= at < period.until:
            if question.only_period:  # its time is all that was asked for
                lifted[seq] = max(lifted[seq], whole)
                one.score = one.score._replace(held=frozenset(range(groups)))
            lifted[seq] *= PERIOD_LIFT
        one.value = lifted[seq]

    return sorted(ranked, key=lambda seq: (-ranked[seq].value, *ranked[seq].newest_first))
