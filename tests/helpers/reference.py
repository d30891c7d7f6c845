"""A search that reads every record, to compare the real one with.

It follows docs/ranking.md step by step and is as slow as that is. Of the product it uses only the
fold and the constants of the formula. Everything is given as plain data: what a grant shows, which
of that a request covers, and the parts of a question with all their spellings.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evidence.fold import fold
from evidence.limits import BUDGETS, CONTRACT
from evidence.ranking import (
    LENGTH_SHARE,
    LONGEST,
    NEAR_CHARS,
    NEIGHBOURS,
    PERIOD_LIFT,
    PLACES_MAX,
    SATURATION,
    TITLE_WEIGHT,
)
from service.records.search.candidates import (
    BEST_PASSAGES,
    CHUNKED_LENGTH,
    CHUNKED_PASSAGES,
    PASSAGE_WORDS,
)

#: What it is worth that the question names the actor of a record.
ACTOR = 1.2
#: Scores are equal if these digits after the point are.
DIGITS = 9


@dataclass(frozen=True)
class Record:
    """A record that a grant shows: the texts of its searched fields, and what its roles say.

    `thread` is (connection, stream, thread), `place` its place in there, `at` its event time.
    `covered` is whether the request covers it too, `limited` whether the grant limits its stream by
    record or time.
    """

    id: str
    texts: Mapping[str, str]
    title: str | None = None
    actor: str | None = None
    thread: tuple[str, str, str] | None = None
    place: tuple[int, str] = (0, "")
    at: int | None = None
    covered: bool = True
    limited: bool = False


@dataclass(frozen=True)
class Part:
    """A word, phrase or `prefix*` with its spellings; `role` says where it must be."""

    spellings: tuple[str, ...]
    role: str | None = None

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        ends = (
            re.escape(one.rstrip("*")) + ("" if one.endswith("*") else r"(?!\S)")
            for one in self.spellings
        )
        return tuple(re.compile(rf"(?<!\S){end}") for end in ends)

    def starts(self, folded: str) -> list[int]:
        """Where it occurs in a folded text."""
        each = (
            [match.start() for match in pattern.finditer(folded)][:PLACES_MAX]
            for pattern in self.patterns
        )
        return sorted(start for starts in each for start in starts)[:PLACES_MAX]


@dataclass(frozen=True)
class Question:
    """`wanted` words, of which with `every` each must occur, and what is required or excluded."""

    wanted: tuple[Part, ...] = ()
    required: tuple[Part, ...] = ()
    excluded: tuple[Part, ...] = ()
    every: bool = False
    period: tuple[int, int] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.wanted, *self.required)


@dataclass(frozen=True)
class Text:
    """A whole value, or a passage of a long one."""

    folded: str
    weight: int
    everywhere: bool
    passage: bool


def is_long(text: str) -> bool:
    return len(text) > CONTRACT.passage_chars


def passages(text: str) -> Iterator[str]:
    """The folded passages of a long text, without words that their ends cut."""
    size, stride = CONTRACT.passage_chars, CONTRACT.passage_stride_chars
    for start in range(0, len(text) - (size - stride), stride):
        words = text[start : start + size]
        if start:
            words = words[words.index(" ") :]
        if start + size < len(text):
            words = words[: words.rindex(" ")]
        yield fold(words)


class Reference:
    """Answers one question over the records that one grant shows."""

    def __init__(self, shown: Sequence[Record], question: Question) -> None:
        self.shown, self.question = {one.id: one for one in shown}, question
        self.mean = self._mean_length()
        self.idfs = [self._idf(part) for part in question.parts]
        self.total = sum(self.idfs) or 1.0
        self._scores = dict[str, float]()

    # What matches

    @cached_property
    def matching(self) -> set[str]:
        """The ids of all records that match."""
        return {one.id for one in self.shown.values() if one.covered and self._matches(one)}

    def _matches(self, record: Record) -> bool:
        question = self.question
        wanted = [occurs(part, record) for part in question.wanted]
        return (
            all(occurs(part, record) for part in question.required)
            and not any(occurs(part, record) for part in question.excluded)
            and (not wanted or (all(wanted) if question.every else any(wanted)))
        )

    def holding_every(self) -> list[str]:
        """Those of them that hold every wanted word."""
        wanted = self.question.wanted
        return [id for id in self.matching if all(occurs(part, self.shown[id]) for part in wanted)]

    # How much a word counts

    def _mean_length(self) -> float:
        """The words of a record on average, of a long value no more than those of a passage."""
        lengths = [
            min(words, words * CONTRACT.passage_chars // len(fold(text)))
            for one in self.shown.values()
            for text in one.texts.values()
            if not one.limited
            for words in [len(fold(text).split())]
        ]
        return sum(lengths) / len(self.shown) if sum(lengths) else 1.0

    def _idf(self, part: Part) -> float:
        records = len(self.shown)
        count = self._count(part)
        return math.log(1 + (records - count + 0.5) / (count + 0.5)) if count else 0.0

    def _count(self, part: Part) -> int:
        """The values with a wanted word, each spelling by itself; the records with another part."""
        if part in self.question.required:
            return sum(occurs(part, one) for one in self.shown.values())
        count = 0
        for spelling in part.spellings:
            alone = Part((spelling,))
            for one in self.shown.values():
                values = sum(bool(alone.starts(fold(text))) for text in one.texts.values())
                count += min(values, 1) if one.limited else values
        return min(count, len(self.shown))

    # The score of a record

    def own(self, id: str) -> float:
        """The score of a record without its neighbours."""
        if id not in self._scores:
            self._scores[id] = self._own(self.shown[id])
        return self._scores[id]

    def _own(self, record: Record) -> float:
        texts = list(self._texts(record))
        places = [[part.starts(text.folded) for part in self.question.parts] for text in texts]
        return self._rarity(record, texts, places) * self._nearness(texts, places)

    def _texts(self, record: Record) -> Iterator[Text]:
        for name, text in record.texts.items():
            is_title = name == record.title
            weight = TITLE_WEIGHT if is_title else 1
            if is_long(text):
                for passage in self._best_passages(list(passages(text))):
                    yield Text(passage, weight, False, True)
            else:
                yield Text(fold(text), weight, is_title or name == record.actor, False)

    def _best_passages(self, every: Sequence[str]) -> list[str]:
        """The three with the rarest words, then those with further words, eight at most."""
        held = [{n for n, part in enumerate(self.question.parts) if part.starts(p)} for p in every]
        order = [n for n in range(len(every)) if held[n]]
        order.sort(key=lambda n: -sum(self.idfs[one] for one in held[n]))
        chosen, words = list[str](), set[int]()
        for number in order:
            if len(chosen) < BEST_PASSAGES or held[number] - words:
                chosen.append(every[number])
                words |= held[number]
        return chosen[: BUDGETS.passages_ranked]

    def _rarity(
        self, record: Record, texts: Sequence[Text], places: Sequence[Sequence[Sequence[int]]]
    ) -> float:
        damp = SATURATION * (
            1 - LENGTH_SHARE + LENGTH_SHARE * min(self._length(record) / self.mean, LONGEST)
        )
        total = 0.0
        for number, idf in enumerate(self.idfs):
            counts = [(len(each[number]) * text.weight, text) for each, text in zip(places, texts)]
            count = sum(n for n, text in counts if not text.passage)
            count += max((n for n, text in counts if text.passage), default=0)
            total += idf * count * (1 + SATURATION) / (count + damp)
        return total

    def _length(self, record: Record) -> int:
        length = 0
        for text in record.texts.values():
            count = len(list(passages(text))) if is_long(text) else 0
            if not count:
                length += len(fold(text).split())
            elif count >= CHUNKED_PASSAGES:
                length += int(CHUNKED_LENGTH * self.mean)
            else:
                length += count * PASSAGE_WORDS
        return length

    def _nearness(self, texts: Sequence[Text], places: Sequence[Sequence[Sequence[int]]]) -> float:
        numbers = range(len(self.idfs))
        held = {n for each in places for n in numbers if each[n]}
        free = {
            n for each, text in zip(places, texts) if text.everywhere for n in numbers if each[n]
        }
        near = best = sum(self.idfs[n] for n in free)
        rarest = sorted(held - free, key=lambda n: -self.idfs[n])
        centres = rarest[: 2 if len(self.idfs) >= 4 else 1]
        for each, text in zip(places, texts):
            if text.everywhere:
                continue
            for centre in [start for number in centres for start in each[number]]:
                found = near
                for number in held - free:
                    if each[number]:
                        distance = min(abs(start - centre) for start in each[number])
                        found += self.idfs[number] / (1 + distance / NEAR_CHARS)
                best = max(best, found)
        return best / self.total

    # Order

    def neighbours(self, id: str) -> dict[str, int]:
        """{record: distance}: those one and two places away in the thread that count."""
        record = self.shown[id]
        if record.thread is None:
            return {}
        thread = [one for one in self.shown.values() if one.thread == record.thread]
        order = [one.id for one in sorted(thread, key=lambda one: one.place)]
        here = order.index(id)
        return {
            order[there]: abs(there - here)
            for there in range(max(0, here - 2), min(len(order), here + 3))
            if there != here and order[there] in self.matching
        }

    def block(
        self, candidates: Sequence[str], earlier: Sequence[str], first: Sequence[str]
    ) -> list[str]:
        """The ids of a block in order.

        `earlier` are the candidates of the blocks before, `first` those of the first block.
        """
        near = {id: self.neighbours(id) for id in self.matching}
        values = self._by_words(candidates, near)
        question = self.question
        if len(question.wanted) > 1 and not (
            question.every or question.required or question.excluded
        ):
            values = self._with_named(values, self._by_words(first, near))
        repeated = {other for id in earlier for other in (id, *near[id])}

        def key(id: str) -> tuple[float, float, str]:
            at = self.shown[id].at
            return -round(values[id], DIGITS), math.inf if at is None else -at, id

        return sorted(values.keys() - repeated, key=key)

    def _by_words(
        self, candidates: Sequence[str], near: Mapping[str, Mapping[str, int]]
    ) -> dict[str, float]:
        """The scores of a block by words."""
        ranked = dict.fromkeys([*candidates, *(other for id in candidates for other in near[id])])
        values = {
            id: self.own(id)
            + sum(NEIGHBOURS[away] * self.own(n) for n, away in near[id].items() if n in ranked)
            for id in ranked
        }
        period = self.question.period
        for id in values:
            at = self.shown[id].at
            if period and at is not None and period[0] <= at < period[1]:
                values[id] *= PERIOD_LIFT
        return values

    def _with_named(
        self, values: Mapping[str, float], first: Mapping[str, float]
    ) -> dict[str, float]:
        """The same as shares of the best of the first block, and more if the actor is named."""
        best, count = float(f"{max(first.values()):.6g}"), len(self.question.wanted)
        tenth = sorted(first.values(), reverse=True)[:10][-1]
        share = round(max(self._coverage(id) for id in first if first[id] >= tenth), 2)
        weight = min(1.0, max(0.0, (count - (2 if share >= 0.4 else 1)) / 2))
        return {
            id: value / best * min(1.0, share / 0.4) + weight * self._names_actor(id) * ACTOR / 6
            for id, value in values.items()
        }

    def _coverage(self, id: str) -> float:
        """The share of the question that a record holds; a word without a record weighs most."""
        most = max(self.idfs)
        weights = [idf or most or 1.0 for idf in self.idfs]
        texts = list(self._texts(self.shown[id]))
        held = [any(part.starts(text.folded) for text in texts) for part in self.question.parts]
        return sum(weight for weight, one in zip(weights, held) if one) / sum(weights)

    def _names_actor(self, id: str) -> bool:
        record = self.shown[id]
        actor = fold(record.texts.get(record.actor or "", ""))
        return any(part.starts(actor) for part in self.question.wanted)


def occurs(part: Part, record: Record) -> bool:
    """Whether a part of a question is in a record: in one field, which may have to be of a role."""
    names = {"primary-title": [record.title], "actor": [record.actor], None: list(record.texts)}
    return any(
        part.starts(fold(record.texts[name])) for name in names[part.role] if name in record.texts
    )
