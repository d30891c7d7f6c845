"""Stage 2 of search: candidates and their neighbours, read and in the order of their scores."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

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
EVERYWHERE: Final = ("primary-title", "actor")
#: The length of a value in chunk rows, in mean records: its passages are ranked, not all of it.
CHUNKED_LENGTH: Final = 0.8
#: Characters of a word with its space, to estimate the length of a text without folding it.
WORD_CHARS: Final = 6


class Part(NamedTuple):
    """A field of `total` characters, or a passage of a long one at an `offset`."""

    field: str
    offset: int
    text: str
    folded: str
    total: int


@dataclass(slots=True)
class Ranked:
    """A record with its score and what was read of it.

    `possible` are the groups that it may hold, as bits. `at` is its event time, in microseconds
    since 1970; None if it has or shows none.
    """

    stream: StreamView
    record: Stored
    score: Score
    value: float
    parts: list[Part]
    possible: int
    at: int | None

    @property
    def newest_first(self) -> tuple[int, str]:
        """The sort key that puts newer event times first, records without one last, then ids."""
        return -(EARLIEST if self.at is None else self.at), self.record.record_key


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
        values = [searched_text(find(record.data, name)) for name in stream.searchable.values()]
        parts, words = list[Part](), 0
        for (ordinal, name), value in zip(stream.searchable.items(), values):
            if value and len(value) <= CONTRACT.passage_chars:
                folded = fold(value)
                words += folded.count(" ") + 1
                parts.append(Part(name, 0, value, folded, len(value)))
            elif value or name in record.big:
                mean = int(CHUNKED_LENGTH * self._ranker.mean)
                words += len(value) // WORD_CHARS if value else mean
                text = text_of(self._snapshot, record, name, ordinal)
                for start in self._likely(record.seq, ordinal, known):
                    passage = text.read(start, start + CONTRACT.passage_chars)
                    parts.append(Part(name, start, passage, fold(passage), text.total))
        possible = self._candidates.possible(record.seq)
        titled, everywhere = stream.title_field, [stream.roles.get(role) for role in EVERYWHERE]
        texts = [
            Text(
                part.folded,
                TITLE_WEIGHT if part.field == titled else 1,
                part.field in everywhere and part.total <= CONTRACT.passage_chars,
                part.total > CONTRACT.passage_chars,
            )
            for part in parts
        ]
        score = self._ranker.score(texts, words, possible)
        at = stream.event_time(record)
        return Ranked(stream, record, score, score.value, parts, possible, at)

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
        at, period = one.at, question.period
        if period is not None and at is not None and period.since <= at < period.until:
            if question.only_period:  # its time is all that was asked for
                lifted[seq] = max(lifted[seq], whole)
                one.score = one.score._replace(held=frozenset(range(groups)))
            lifted[seq] *= PERIOD_LIFT
        one.value = lifted[seq]

    return sorted(ranked, key=lambda seq: (-ranked[seq].value, *ranked[seq].newest_first))
