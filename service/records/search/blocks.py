"""Stage 2 of search: candidates and their neighbors, in the order of their scores.

They are ranked by the folded texts of the index. The records themselves are read only to be shown,
or if their times decide an order; a far engine sends a few of them together with the texts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from itertools import accumulate, chain, compress
from typing import Final, NamedTuple

from evidence.limits import BUDGETS, CONTRACT
from evidence.question import Question
from evidence.ranking import PERIOD_LIFT, TITLE_WEIGHT, Ranker, Score, Text, with_neighbours
from service.records.search.candidates import Candidates, Passages
from service.records.engine import Loader, PassageKey, Stored
from service.records.engine.later import Later
from service.records.view.texts import text_of
from evidence.manifest.values import EARLIEST
from service.records.view.streams import StreamView
from service.records.view.coverage import Coverage, SearchedField

#: Passages whose chunks are read at once, although not all of them will be shown.
CHUNKED_MOST: Final = 100

#: Digits after the point of a score; what follows depends on the order in which it was summed.
DIGITS: Final = 9

#: {record: {neighbour: distance in its thread}}, as `Snapshot.neighbours` returns it.
Near = dict[int, dict[int, int]]


class Part(NamedTuple):
    """A field of `total` characters, or a passage of a long one at an `offset`."""

    field: str
    offset: int
    text: str
    total: int


class Likely(NamedTuple):
    """A part of a record in which words were found.

    `worth` is the summed idf of its groups, which no passage of it exceeds.
    """

    field: str
    worth: float
    part: Later[Part]


@dataclass(slots=True)
class Ranked:
    """A record with its score."""

    seq: int
    stream: StreamView
    score: Score
    value: float


class RankedRecord(NamedTuple):
    """A ranked record with the parts that gave its score, best first, and their folded `texts`.

    `possible` are the groups that it may hold, as bits; `apart` the fields in chunk rows none of
    whose passages can hold all groups; `starts` where passages of these fields start that hold one,
    for fields of which that is known.
    """

    stream: StreamView
    record: Stored
    score: Score
    likely: list[Likely]
    texts: list[str]
    possible: int
    apart: frozenset[str]
    starts: dict[str, list[int]]


class _Texts(NamedTuple):
    """What is read of one record: its texts with their places, the number of its words.

    `possible` are the groups that it may hold, as bits.
    """

    stream: StreamView
    possible: int
    texts: list[Text]
    places: list[tuple[int, int]]
    words: list[int]


class Reader:
    """Reads records for a ranker: their short fields whole, of long ones the likely passages."""

    def __init__(self, candidates: Candidates, covered: Coverage, ranker: Ranker) -> None:
        self.ranker, self.candidates = ranker, candidates
        self._snapshot = candidates.snapshot
        self._covered, self._fields = covered, covered.fields
        #: Whether no passage of a long value holds a word but those that rows were seen of.
        self._saw_all = candidates.saw_all(ranker.groups)
        self._texts: dict[int, _Texts] = {}
        self._records: dict[int, Stored] = {}
        self._loaders: dict[int, Loader] = {}
        self._passages: dict[int, Passages] = {}

    def load(self, seqs: Sequence[int]) -> None:
        """Loads the texts of some records."""
        if not seqs:
            return
        snapshot, candidates = self._snapshot, self.candidates
        passages = candidates.passages_of(seqs)
        self._passages |= passages
        starts = {
            (seq, ordinal): self._best(places)
            for seq, by_ordinal in passages.items()
            for ordinal, places in by_ordinal.items()
        }
        places = _places(starts)
        self._loaders |= dict.fromkeys(seqs, snapshot.loader(seqs, places[:CHUNKED_MOST]))
        texts = snapshot.texts(self._covered.scope().fields, seqs)
        parts = snapshot.passages(places)
        unseen, fields, saw_all = list[tuple[int, int]](), self._fields, self._saw_all
        for seq, ordinal, count, folded in texts.get():
            record_texts = self._of(seq, ordinal)
            if not count:
                field = fields[ordinal]
                weight = _weight(field)
                record_texts.words.append(folded.count(" ") + 1)
                record_texts.texts.append(
                    Text(folded, weight, field.everywhere, False, record_texts.possible)
                )
                record_texts.places.append((ordinal, 0))
                continue
            record_texts.words.append(self.ranker.length_of(count))
            if not saw_all and (seq, ordinal) not in starts:
                unseen.append((seq, ordinal))
        self._add_passages(parts.get(), starts)
        self._add_likely(unseen)

    def _of(self, seq: int, ordinal: int) -> _Texts:
        if seq not in self._texts:
            self._texts[seq] = _Texts(
                self._fields[ordinal].stream, self.candidates.possible(seq), [], [], []
            )
        return self._texts[seq]

    def _best(self, places: dict[int, int]) -> dict[int, int]:
        """{start: groups that may be there} of the passages that are read."""
        incomplete, most = ~self.candidates.complete_groups, BUDGETS.passages_ranked
        chosen = self.candidates.starts(places, self.ranker.groups, most)
        return {start: places[start] | incomplete for start in chosen}

    def _add_passages(
        self, folded: Mapping[PassageKey, str], starts: Mapping[tuple[int, int], Mapping[int, int]]
    ) -> None:
        for (seq, ordinal), places in starts.items():
            record_texts, weight = self._of(seq, ordinal), _weight(self._fields[ordinal])
            for start, possible in places.items():
                text = folded.get((seq, ordinal, start), "")
                record_texts.texts.append(Text(text, weight, False, True, possible))
                record_texts.places.append((ordinal, start))

    def _add_likely(self, unseen: Sequence[tuple[int, int]]) -> None:
        """Adds passages of long values that no row was seen of."""
        promises = [(field_key, self._likely(*field_key)) for field_key in unseen]
        most, likely = BUDGETS.passages_ranked, dict[tuple[int, int], dict[int, int]]()
        for field_key, passages in promises:
            starts, possible = likely.setdefault(field_key, {}), self._of(*field_key).possible
            for some in passages:
                if len(starts) >= most:
                    break
                starts |= dict.fromkeys(some.get()[: most - len(starts)], possible)
        self._add_passages(self._snapshot.passages(_places(likely)).get(), likely)

    def _likely(self, seq: int, ordinal: int) -> list[Later[list[int]]]:
        """Where passages of a long value start: with the rarest words together, then with each."""
        groups = sorted(
            (group for group in self.ranker.groups if group.count and not group.word.prefix),
            key=lambda group: -group.idf,
        )
        terms = [group.spellings for group in groups]
        together = [terms[:size] for size in range(min(3, len(terms)), 1, -1)]
        most = BUDGETS.passages_ranked
        return [
            self._snapshot.passages_with(seq, ordinal, required, most)
            for required in (*together, *([term] for term in terms))
        ]

    def stream_of(self, seq: int) -> StreamView:
        """The stream of a loaded record that holds a word."""
        return self._texts[seq].stream

    def scores(self, seqs: Sequence[int]) -> dict[int, float]:
        """Loads records and scores them by the engine. Those without a text are left out."""
        self.load(seqs)
        scoring, loaded = self._snapshot.scoring, [seq for seq in seqs if seq in self._texts]
        assert scoring is not None
        records = [(sum(self._texts[seq].words), self._texts[seq].texts) for seq in loaded]
        return dict(zip(loaded, scoring.scores(self.ranker, records)))

    def explain(self, ranked: Iterable[Ranked]) -> None:
        """Computes what the scores of loaded records are made of."""
        for candidate in ranked:
            texts = self._texts[candidate.seq]
            candidate.score = self.ranker.score(texts.texts, sum(texts.words))

    def ranked(self, most: int | None = None) -> dict[int, Ranked]:
        """The loaded records, each with its score.

        Only the best `most` scores are exact; others may be overestimated, but stay below.
        """
        wordless = [seq for seq in self._passages if seq not in self._texts]
        streams = {stream.id: stream for stream in self._covered.streams} if wordless else {}
        ranked = {
            record.seq: Ranked(record.seq, streams[record.stream], NOTHING, 0.0)
            for record in self.records(wordless).values()
        }
        best, least = [0.0] * (most or 0), 0.0
        for seq, (stream, _, texts, _, words) in self._texts.items():
            score = self.ranker.score(texts, sum(words), least)
            ranked[seq] = Ranked(seq, stream, score, score.value)
            if best and score.value > least:
                heapreplace(best, score.value)
                least = best[0]
        return ranked

    def names_actor(self, candidate: Ranked) -> bool:
        """Whether a word that was looked for is in the field that says who the record is from."""
        texts = self._texts.get(candidate.seq)
        for (ordinal, _), worth in zip(texts.places if texts else (), candidate.score.worths):
            if worth and self._fields[ordinal].is_actor:
                return True
        return False

    def records(
        self, seqs: Iterable[int], passages: Sequence[PassageKey] = ()
    ) -> dict[int, Stored]:
        """Records by their seq, each read once. Of some, these `passages` will be read."""
        record_seqs, lacking = list(seqs), dict[Loader, list[int]]()
        for seq in record_seqs:
            if seq not in self._records:
                lacking.setdefault(self._loaders[seq], []).append(seq)
        for records in [load(some, passages) for load, some in lacking.items()]:
            self._records |= records.get()
        return {seq: self._records[seq] for seq in record_seqs}

    def times(self, ranked: Iterable[Ranked]) -> dict[int, int | None]:
        """The event times of records in microseconds since 1970; None if one has or shows none."""
        ranked = list(ranked)
        records = self.records(candidate.seq for candidate in ranked)
        return {
            candidate.seq: candidate.stream.event_time(records[candidate.seq])
            for candidate in ranked
        }

    def newest_first(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """Records by event time, the newer first, records without one last, then by id."""
        times, records = self.times(ranked), self.records(candidate.seq for candidate in ranked)

        def key(candidate: Ranked) -> tuple[int, str, int]:
            at = times[candidate.seq]
            return (
                -(EARLIEST if at is None else at),
                records[candidate.seq].record_key,
                candidate.seq,
            )

        return sorted(ranked, key=key)

    def before(self, seq: int, tied: Sequence[Ranked]) -> set[int]:
        """Those of some records that tie that come before another one, and this one itself.

        All of them if that record is gone.
        """
        streams = {stream.id: stream for stream in self._covered.streams}
        if seq not in self._records:
            self._records |= self._snapshot.load([seq]).get()
        record = self._records.get(seq)
        if record is None or record.stream not in streams:
            return {candidate.seq for candidate in tied}
        last = Ranked(seq, streams[record.stream], NOTHING, 0.0)
        others = [candidate for candidate in tied if candidate.seq != seq]
        order = [candidate.seq for candidate in self.newest_first([last, *others])]
        return set(order[: order.index(seq) + 1])

    def ranked_records(self, ranked: Sequence[Ranked]) -> list[RankedRecord]:
        """Some ranked records as they are shown."""
        likely = [
            (candidate.seq, *place)
            for candidate in ranked
            if (texts := self._texts.get(candidate.seq))
            for place, text, worth in zip(texts.places, texts.texts, candidate.score.worths)
            if worth and text.part
        ]
        records = self.records((candidate.seq for candidate in ranked), likely[:CHUNKED_MOST])
        return [self._ranked_record(candidate, records[candidate.seq]) for candidate in ranked]

    def _ranked_record(self, candidate: Ranked, record: Stored) -> RankedRecord:
        names, record_texts = candidate.stream.searchable, self._texts.get(candidate.seq)
        texts, places = (record_texts.texts, record_texts.places) if record_texts else ([], [])
        likely = [
            Likely(
                names[ordinal],
                worth,
                self._part(record, names[ordinal], ordinal, start),
            )
            for (ordinal, start), worth in zip(places, candidate.score.worths)
            if worth
        ]
        likely.sort(key=lambda part: (-part.worth, part.field))
        passages, candidates = self._passages[candidate.seq], self.candidates
        large_fields = [
            (name, passages.get(ordinal, {}))
            for ordinal, name in names.items()
            if name in record.big
        ]
        apart = frozenset(name for name, places in large_fields if candidates.is_apart(places))
        starts = {name: sorted(places) for name, places in large_fields if self._saw_all}
        folded = [text.folded for text in texts]
        possible = candidates.possible(candidate.seq)
        return RankedRecord(
            candidate.stream, record, candidate.score, likely, folded, possible, apart, starts
        )

    def _part(self, record: Stored, name: str, ordinal: int, start: int) -> Later[Part]:
        value = text_of(self._snapshot, record, name, ordinal)
        text = value.read(start, start + CONTRACT.passage_chars)
        return text.then(lambda text: Part(name, start, text, value.total))


NOTHING: Final = Score(0.0, frozenset())


def _weight(field: SearchedField) -> int:
    """The weight of an occurrence of a word."""
    return TITLE_WEIGHT if field.is_title else 1


def _places(starts: Mapping[tuple[int, int], Iterable[int]]) -> list[PassageKey]:
    return [
        (*field_key, start) for field_key, field_starts in starts.items() for start in field_starts
    ]


def scored(
    reader: Reader, ranked: dict[int, Ranked], near: Near, question: Question
) -> dict[int, float]:
    """The scores by words of records, with what neighbours and the period of the question add."""
    values = with_neighbours({seq: candidate.value for seq, candidate in ranked.items()}, near)
    period, ranker = question.period, reader.ranker
    times = {} if period is None else reader.times(ranked.values())
    for seq, candidate in ranked.items():
        at = times.get(seq)
        if period is not None and at is not None and period.since <= at < period.until:
            if question.only_period:  # its time is all that was asked for
                values[seq] = max(values[seq], ranker.best)
                candidate.score = candidate.score._replace(
                    held=frozenset(range(len(ranker.groups)))
                )
            values[seq] *= PERIOD_LIFT
    return values


def in_order(
    reader: Reader, ranked: dict[int, Ranked], values: Mapping[int, float], most: int
) -> list[Ranked]:
    """Records by their values. Ties go to the newer event time, then to the record id.

    After the first `most`, records that tie come in any order, so that their times need not be
    read.
    """
    alike: dict[float, list[Ranked]] = {}
    for seq, candidate in ranked.items():
        candidate.value = values[seq]
        alike.setdefault(round(candidate.value, DIGITS), []).append(candidate)
    groups = [alike[value] for value in sorted(alike, reverse=True)]
    starts = accumulate(map(len, groups), initial=0)
    tied = [len(group) > 1 and start < most for group, start in zip(groups, starts)]
    # All that are to be sorted are read at once.
    reader.records(candidate.seq for group in compress(groups, tied) for candidate in group)
    ordered = (reader.newest_first(g) if is_tied else g for g, is_tied in zip(groups, tied))
    return list(chain.from_iterable(ordered))
