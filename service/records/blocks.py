"""Stage 2 of search: candidates and their neighbours, read and in the order of their scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from evidence.fold import fold
from evidence.limits import BUDGETS, CONTRACT
from evidence.question import Question
from evidence.ranking import PERIOD_LIFT, TITLE_WEIGHT, Ranker, Score, Text, with_neighbours
from service.records.candidates import Candidates, Passages
from service.records.engine import Stored
from service.records.texts import Text as Value, chunks_of, text_of
from service.records.values import EARLIEST
from service.records.view import StreamView

#: The length of a value in chunk rows, in mean records: its passages are ranked, not all of it.
CHUNKED_LENGTH: Final = 0.8
#: Characters of a word with its space, to estimate the length of a text without folding it.
WORD_CHARS: Final = 6

#: {record: {neighbour: places away}}, as `Snapshot.neighbours` returns it.
Near = dict[int, dict[int, int]]
#: A field of a record, as its seq and the ordinal of the field.
Place = tuple[int, int]
#: The values of searched fields.
Values = dict[Place, Value]


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

    `possible` are the groups that it may hold, as bits; `apart` the fields in chunk rows none of
    whose passages can hold all groups; `starts` where passages of these fields start that hold one,
    for fields of which that is known.
    """

    stream: StreamView
    record: Stored
    score: Score
    value: float
    parts: list[Part]
    possible: int
    apart: frozenset[str]
    starts: dict[str, list[int]]

    @property
    def at(self) -> int | None:
        """Its event time in microseconds since 1970; None if it has or shows none."""
        return self.stream.event_time(self.record)

    @property
    def newest_first(self) -> tuple[int, str]:
        """The sort key that puts newer event times first, records without one last, then ids."""
        at = self.at
        return -(EARLIEST if at is None else at), self.record.record_key


class Reader:
    """Reads records for a ranker: their short fields whole, of long ones the likely passages."""

    def __init__(
        self, candidates: Candidates, streams: dict[int, StreamView], ranker: Ranker
    ) -> None:
        self._candidates, self._streams, self._ranker = candidates, streams, ranker
        self._snapshot = candidates.snapshot
        #: Whether no passage of a long value holds a word but those that rows were seen of.
        self._saw_all = candidates.saw_all(ranker.groups)
        self._names = {n: name for one in streams.values() for n, name in one.searchable.items()}
        self._records: dict[int, Stored] = {}
        #: Where passages of long values start that will be read, by record and ordinal.
        self._starts: dict[Place, list[int]] = {}
        self._passages: dict[int, Passages] = {}

    def load(self, seqs: Sequence[int], near: Callable[[], Near]) -> Near:
        """Loads some records, and what is known to be needed to rank them; returns what is near."""
        if not seqs:
            return {}
        groups, most = self._ranker.groups, BUDGETS.passages_ranked
        passages = self._candidates.passages_of(seqs)
        self._passages |= passages
        seen = {
            (seq, ordinal): self._candidates.starts(places, groups, most)
            for seq, known in passages.items()
            for ordinal, places in known.items()
        }
        load, fetch = partial(self._snapshot.load, seqs), partial(self._fetch, seen)
        self._snapshot.ahead([load, near, fetch])
        self._records |= load()
        fetch()
        self._starts |= seen
        return near()

    def ranked(self) -> dict[int, Ranked]:
        """The loaded records of the searched streams, each with its score."""
        records = [one for one in self._records.values() if one.stream in self._streams]
        values = {
            (record.seq, ordinal): text_of(self._snapshot, record, name, ordinal)
            for record in records
            for ordinal, name in self._streams[record.stream].searchable.items()
        }
        ranges = self._ranges(values)
        texts = [values[place].read(start, end) for place, start, end in ranges]
        parts: dict[Place, list[Part]] = {place: [] for place in values}
        for (place, start, _), text, folded in zip(ranges, texts, list(map(fold, texts))):
            field, total = self._names[place[1]], values[place].total
            parts[place].append(Part(field, start, text, folded, total))
        weighed = [self._weighed(one, values, parts) for one in records]
        possible = [self._candidates.possible(one.seq) for one in records]
        scores = [self._ranker.score(*one, bits) for one, bits in zip(weighed, possible)]
        ranked = {}
        for one, score, bits in zip(records, scores, possible):
            stream = self._streams[one.stream]
            read = [part for ordinal in stream.searchable for part in parts[one.seq, ordinal]]
            ranked[one.seq] = Ranked(stream, one, score, score.value, read, bits, *self._seen(one))
        return ranked

    def _ranges(self, values: Values) -> list[tuple[Place, int, int]]:
        """(place, start, end) of what is read: short values whole, likely passages of long ones."""
        long = [place for place, one in values.items() if one.total > CONTRACT.passage_chars]
        unseen = [place for place in long if place not in self._starts and not self._saw_all]
        if unseen:
            self._snapshot.ahead(ask for place in unseen for ask in self._asks(*place))
            likely = {place: self._likely(*place) for place in unseen}
            self._fetch(likely)
            self._starts |= likely
        size, chosen = CONTRACT.passage_chars, {
            place: self._starts.get(place, []) for place in long
        }
        return [
            (place, start, start + size if place in chosen else value.total)
            for place, value in values.items()
            for start in chosen.get(place, [0] if value.total else [])
        ]

    def _fetch(self, starts: dict[Place, list[int]]) -> None:
        """Fetches the chunks of passages of long values."""
        places = {
            (seq, self._names[ordinal], number)
            for (seq, ordinal), found in starts.items()
            if ordinal in self._names
            for start in found
            for number in chunks_of(start, start + CONTRACT.passage_chars)
        }
        if places:
            self._snapshot.fetch(sorted(places))

    def _weighed(
        self, record: Stored, values: Values, parts: dict[Place, list[Part]]
    ) -> tuple[list[Text], int]:
        """(the parts of a record as they are weighed, the number of its words)."""
        stream, texts, words = self._streams[record.stream], list[Text](), 0
        for ordinal, name in stream.searchable.items():
            place = record.seq, ordinal
            weight = TITLE_WEIGHT if name == stream.title_field else 1
            total, folded = values[place].total, [part.folded for part in parts[place]]
            if total <= CONTRACT.passage_chars:
                texts += [Text(one, weight, name in stream.everywhere) for one in folded]
                words += sum([one.count(" ") + 1 for one in folded])
                continue
            texts += [Text(one, weight, part=True) for one in folded]
            chunked = name in record.big
            words += int(CHUNKED_LENGTH * self._ranker.mean) if chunked else total // WORD_CHARS
        return texts, words

    def _seen(self, record: Stored) -> tuple[frozenset[str], dict[str, list[int]]]:
        """What rows tell of fields in chunk rows; see `Ranked`."""
        known, big, candidates = self._passages[record.seq], record.big, self._candidates
        fields = self._streams[record.stream].searchable.items() if big else ()
        held = [(name, known.get(ordinal, {})) for ordinal, name in fields if name in big]
        apart = frozenset([name for name, places in held if candidates.is_apart(places)])
        return apart, {name: sorted(places) for name, places in held if self._saw_all}

    def _likely(self, seq: int, ordinal: int) -> list[int]:
        """Where the passages of a long value start that hold most of the rarest words."""
        most, starts = BUDGETS.passages_ranked, dict[int, None]()
        for ask in self._asks(seq, ordinal):
            if len(starts) >= most:
                break
            starts.update(dict.fromkeys(ask()[: most - len(starts)]))
        return list(starts)

    def _asks(self, seq: int, ordinal: int) -> list[Callable[[], list[int]]]:
        """Asks for passages of a long value: with the rarest words together, then with each."""
        groups = sorted(
            (group for group in self._ranker.groups if group.count), key=lambda one: -one.idf
        )
        spelled = [group.spellings for group in groups]
        together = [spelled[:size] for size in range(min(3, len(spelled)), 1, -1)]
        ask = partial(self._snapshot.passages_with, seq, ordinal)
        most = BUDGETS.passages_ranked
        return [partial(ask, wanted, most) for wanted in (*together, *([one] for one in spelled))]


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
    period = question.period
    for seq, one in ranked.items():
        at = None if period is None else one.at
        if period is not None and at is not None and period.since <= at < period.until:
            if question.only_period:  # its time is all that was asked for
                lifted[seq] = max(lifted[seq], whole)
                one.score = one.score._replace(held=frozenset(range(groups)))
            lifted[seq] *= PERIOD_LIFT
        one.value = lifted[seq]

    alike: dict[float, list[int]] = {}
    for seq, one in ranked.items():
        alike.setdefault(one.value, []).append(seq)
    for tied in alike.values():
        if len(tied) > 1:  # only they need their times read
            tied.sort(key=lambda seq: ranked[seq].newest_first)
    return [seq for value in sorted(alike, reverse=True) for seq in alike[value]]
