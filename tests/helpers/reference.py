"""A search that reads every record, to compare the real one with.

It follows docs/ranking.md step by step and is as slow as that is. Of the product it uses only the
fold and the constants of the formula. Everything is given as plain data: what a grant shows, which
of that a request covers, and the parts of a question with all their spellings.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from evidence.fold import fold
from evidence.limits import BUDGETS, CONTRACT
from evidence.ranking import (
    CHUNKED_LENGTH,
    CHUNKED_PASSAGES,
    LENGTH_SHARE,
    LONGEST,
    NEAR_CHARS,
    NEIGHBOURS,
    PASSAGE_WORDS,
    PERIOD_LIFT,
    SATURATION,
    TITLE_WEIGHT,
)
from tests.helpers.reference_meaning import DIGITS, NEAREST, Meaning, lifted
from tests.helpers.reference_parts import Part, Question, Record, occurs
from service.records.search.candidates import BEST_PASSAGES

#: What it is worth that the question names the actor of a record: with vectors, and without.
ACTOR = {True: 1.5, False: 1.2}


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


class Standard(NamedTuple):
    """What the first block sets: its best score, its best coverage, the weight of the rest."""

    best: float
    coverage: float
    weight: float


class Reference:
    """Answers one question over the records that one grant shows; `meaning` if it has vectors."""

    def __init__(
        self, shown: Sequence[Record], question: Question, meaning: Meaning | None = None
    ) -> None:
        self.shown, self.question = {one.id: one for one in shown}, question
        self.meaning = meaning if meaning and self._is_near(question) else None
        self.mean = self._mean_length()
        self.idfs = [self._idf(part) for part in question.parts]
        self.total = sum(self.idfs) or 1.0
        self._scores = dict[str, float]()

    def _is_near(self, question: Question) -> bool:
        """Whether meaning counts: for words alone, or if none of what is quoted is found."""
        quoted = not (question.every or question.excluded) and len(question.wanted) > 1
        parts = (part.role or part.spellings[0].endswith("*") for part in question.required)
        return question.is_plain or (quoted and not any(parts) and not self.matching)

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
        return {n: away for n, away in self._around(id).items() if n in self.matching}

    def _around(self, id: str) -> dict[str, int]:
        """The same with those that do not match."""
        record = self.shown[id]
        if record.thread is None:
            return {}
        thread = [one for one in self.shown.values() if one.thread == record.thread]
        order = [one.id for one in sorted(thread, key=lambda one: one.place)]
        here = order.index(id)
        return {
            order[there]: abs(there - here)
            for there in range(max(0, here - 2), min(len(order), here + 3))
            if there != here and self.shown[order[there]].covered
        }

    def block(
        self, candidates: Sequence[str], earlier: Sequence[str], first: Sequence[str]
    ) -> list[str]:
        """The ids of a block in order.

        `earlier` are the candidates of the blocks before, `first` those of the first block.
        """
        near = {id: self.neighbours(id) for id in self.matching}
        values = self._values(candidates, first, near)
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

    def _values(
        self,
        candidates: Sequence[str],
        first: Sequence[str],
        near: Mapping[str, Mapping[str, int]],
    ) -> dict[str, float]:
        """The values of a block: by words, or as shares of the best of the first with the rest."""
        values = self._by_words(candidates, near)
        if len(self.question.wanted) < 2 or not self.question.is_plain:
            return values
        standard, meaning = self._standard(self._by_words(first, near)), self._meanings(values)
        bonus = ACTOR[self.meaning is not None]
        return {
            id: value / standard.best * min(1.0, standard.coverage / 0.4)
            + standard.weight * (meaning[id] + self._names_actor(id) * bonus) / 6
            for id, value in values.items()
        }

    def _standard(self, first: Mapping[str, float]) -> Standard:
        if not first:
            return Standard(0.0, 0.0, 1.0)
        best, count = float(f"{max(first.values()):.6g}"), len(self.question.wanted)
        tenth = sorted(first.values(), reverse=True)[:10][-1]
        share = round(max(self._coverage(id) for id in first if first[id] >= tenth), 2)
        weight = min(1.0, max(0.0, (count - (2 if share >= 0.4 else 1)) / 2))
        return Standard(best, share, weight)

    def _meanings(self, block: Iterable[str]) -> dict[str, float]:
        """How near the records of a block are; one without a vector counts as their median."""
        if self.meaning is None:
            return dict.fromkeys(block, 0.0)
        nearness, block = dict(self.meaning.nearness), list(block)
        ordered = sorted(nearness[id] for id in block if id in nearness) or [0.0]
        nearness |= {id: ordered[len(ordered) // 2] for id in block if id not in nearness}
        return {id: lifted(nearness, id, self._around(id)) for id in block}

    def first_page(
        self, ranked: Sequence[str], first: Sequence[str], limit: int
    ) -> list[tuple[str, bool]]:
        """The ids of a first page, each with whether it is related.

        `ranked` are the records of the first block in order, `first` its candidates.
        """
        proven = [(id, False) for id in ranked[:limit]]
        if self.meaning is None or (ranked and len(self.question.wanted) < 2):
            return proven
        near = {id: self.neighbours(id) for id in self.matching}
        values = self._values(first, first, near) if ranked else {}
        standard = self._standard(self._by_words(first, near))
        room = max(1, 3 * limit // 10) if ranked else limit
        related = self._related()
        if standard.coverage >= 0.4:
            free = limit - min(limit, len(ranked))
            return [*proven, *((id, True) for id in list(related)[: min(room, free)])]
        entries = [(-values[id], 0, n, id) for n, (id, _) in enumerate(proven)]
        entries += [
            (-standard.weight * value / 6, 1, n, id)
            for n, (id, value) in enumerate(list(related.items())[:room])
        ]
        return [(id, bool(is_related)) for _, is_related, _, id in sorted(entries)[:limit]]

    def _related(self) -> dict[str, float]:
        """The nearest records without a word of the question, best first."""
        assert self.meaning is not None
        nearness, place = self.meaning.nearness, {id: n for n, id in enumerate(self.shown)}
        wordless = [
            id
            for id, one in self.shown.items()
            if one.covered
            and id in nearness
            and not any(occurs(part, one) for part in self.question.parts)
        ]
        wordless.sort(key=lambda id: (-nearness[id], place[id]))
        values = {id: lifted(nearness, id, self._around(id)) for id in wordless[:NEAREST]}
        order = sorted(values, key=lambda id: (-round(values[id], DIGITS), place[id]))
        return {id: values[id] for id in order if values[id] > 0}

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
