"""The 120 tasks of the evidence benchmark, planted in its records.

| kind | tasks | what is asked for |
|---|---|---|
| needle | 24 | the code in the one sentence with all words of a question |
| long | 16 | the same in a text of 200,000 characters |
| apart | 16 | the code beside the second of two words that are 40 words apart |
| end | 12 | the last 60 characters of a text |
| count | 16 | the number of messages in an account with a folder or a sender |
| twins | 12 | the code of a record whose id occurs in two accounts |
| odd-id | 12 | the code of a record with an awkward id, found by words or named |
| absent | 12 | words that no record has together: the answer is that there is none |
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import combinations
from random import Random
from typing import Any, Self

from quality.evidence import proof
from quality.evidence.corpus import (
    QUERY_WORDS,
    Record,
    Writer,
    pairs,
    plant,
    records,
    take,
)

#: The answer to a question that no record answers.
NONE = "none"
TAIL_CHARS = 60


@dataclass(frozen=True, slots=True)
class Ask:
    """All that an agent gets to know of a task.

    `goal` is `sentence`, `beside`, `closing`, `tail` or `count`; `words` are the question. A named
    record has `account`, the label of its connection, `stream` and `record_id`. `equal` are the
    values that counted records have.
    """

    goal: str
    words: tuple[str, ...] = ()
    account: str = ""
    stream: str = ""
    record_id: str = ""
    equal: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """A question with its right answer."""

    id: str
    ask: Ask
    answer: str

    @property
    def kind(self) -> str:
        return self.id.rpartition("-")[0]

    @classmethod
    def read(cls, row: dict[str, Any]) -> Self:
        """The task that was written as this JSON."""
        ask = {**row["ask"], "words": tuple(row["ask"]["words"])}
        return cls(row["id"], Ask(**ask), row["answer"])

    @property
    def row(self) -> dict[str, Any]:
        return asdict(self)


def make(seed: int, scale: float = 1) -> tuple[list[Record], list[Task]]:
    """The records and the tasks of a seed. Raises `ValueError` if a task has two right answers."""
    planner = _Planner(seed, scale)
    tasks = [
        Task(f"{kind}-{number:02}", ask, answer())
        for kind, planned in planner.plan().items()
        for number, (ask, answer) in enumerate(planned, start=1)
    ]
    for task in tasks:
        if task.ask.words and task.kind != "odd-id":
            texts = [record.text for record in planner.having(task.ask.words)]
            answers = {answer for text in texts for answer in proof.answers(task.ask, text)}
            if answers != {task.answer} - {NONE}:
                raise ValueError(f"Seed {seed} gives {task.id} several answers. Use another seed.")
    return planner.records, tasks


#: What is asked, and the answer once all texts are complete.
_Planned = tuple[Ask, Callable[[], str]]


class _Planner:
    def __init__(self, seed: int, scale: float) -> None:
        self._random = Random(seed)
        self._writer = Writer(self._random)
        self.records = records(self._random, self._writer, scale)
        self._pairs = list(pairs(self._random, self.records))
        self._long = [record for record in self.records if record.long]
        self._asked = list[set[str]]()

    def plan(self) -> dict[str, list[_Planned]]:
        """The tasks by kind. Absent words come last, after every other word is planted."""
        self._random.shuffle(self._long)
        planned = {
            "needle": [self._needle(number, crowded=number >= 14) for number in range(24)],
            "long": [
                self._needle(number, record, crowded=number >= 8)
                for number, record in enumerate(self._long[:16])
            ],
            "apart": [self._apart() for _ in range(16)],
            "end": [self._end(number) for number in range(12)],
            "twins": [self._closing(pair[n % 2]) for n, pair in enumerate(self._pairs[:12])],
            "odd-id": [*self._odd_ids()],
            "count": [*self._counts()],
        }
        return {**planned, "absent": [*self._absent()]}

    def _words(self, number: int) -> list[str]:
        """Query words of which at most one was in the same question before."""
        while True:
            words = self._random.sample(QUERY_WORDS, number)
            if all(len(earlier.intersection(words)) < 2 for earlier in self._asked):
                self._asked.append(set(words))
                return words

    def _plant(self, record: Record, sentence: str, low: float = 0, high: float = 1) -> None:
        plant(self._random, record, sentence, low, high)

    def _decoys(self, words: list[str], record: Record, each: int, together: int) -> None:
        """Plants the words in other records: one alone, or all of them far apart."""
        others = [other for other in self.records if other is not record and not other.long]
        roomy = [other for other in others if len(other.paragraphs) > 8]
        single = self._random.sample(others, each * len(words))
        for word, other in zip(words * each, single):
            self._plant(other, self._writer.planted("decoys", word))
        for other in self._random.sample(roomy, together):
            for number, word in enumerate(words):
                start = number / len(words)
                decoy = self._writer.planted("decoys", word)
                self._plant(other, decoy, start, start + 0.5 / len(words))

    def _needle(self, number: int, record: Record | None = None, *, crowded: bool) -> _Planned:
        """If `crowded`, the record has each word twice before, and more others have all words."""
        words, code = self._words(2 + number % 2), self._writer.code()
        record = record or take(
            self._random, self.records, lambda record: len(record.paragraphs) > 8 * crowded
        )
        kind = "spread" if number % 2 else "adjacent"
        sentence = self._writer.planted(kind, *words, code=code)
        self._plant(record, sentence, 0.55 if crowded else 0.15, 0.97)
        if crowded:
            for word in words * 2:
                self._plant(record, self._writer.planted("decoys", word), 0, 0.4)
        self._decoys(words, record, each=5, together=8 if crowded else 2)
        return Ask("sentence", tuple(words)), lambda: code

    def _apart(self) -> _Planned:
        words, code = self._words(2), self._writer.code()
        record = take(self._random, self.records, lambda record: len(record.paragraphs) > 3)
        between = " ".join(self._writer.words(40)).capitalize()
        first = self._writer.planted("first", words[0])
        second = self._writer.planted("second", words[1], code=code)
        self._plant(record, f"{first} {between}. {second}")
        self._decoys(words, record, each=6, together=2)
        return Ask("beside", tuple(words)), lambda: code

    def _end(self, number: int) -> _Planned:
        record = (
            self._long[number]
            if number < 8
            else take(self._random, self.records, lambda record: len(record.text) > 6_000)
        )
        if number % 3 == 2:
            record.paragraphs[-1] += " Thanks 🙂🚢 – see you là-bas, 会議室."
        return self._named("tail", record), lambda: record.text[-TAIL_CHARS:]

    def _closing(self, record: Record, words: tuple[str, ...] = ()) -> _Planned:
        """Ends a record with its code. The record is named, or found by words."""
        code = self._writer.code()
        record.paragraphs.append(self._writer.planted("closing", code=code))
        ask = Ask("closing", words) if words else self._named("closing", record)
        return ask, lambda: code

    def _named(self, goal: str, record: Record) -> Ask:
        account = record.account
        return Ask(goal, (), account.label, account.stream, record.id)

    def _odd_ids(self) -> Iterator[_Planned]:
        odd = [record for record in self.records if record.odd]
        for number, record in enumerate(self._random.sample(odd, 12)):
            words = tuple(self._words(2)) if number % 2 else ()
            if words:
                code = self._writer.code()
                self._plant(record, self._writer.planted("adjacent", *words, code=code), 0, 0.2)
            record.paragraphs += self._writer.paragraphs(1_500)
            yield self._closing(record, words)

    def _counts(self) -> Iterator[_Planned]:
        mail = [record for record in self.records if record.account.stream == "messages"]
        for number in range(16):
            example = self._random.choice(mail)
            equal = {"folder": example.folder, "sender": example.sender}
            if number >= 8:
                del equal["folder" if number % 2 else "sender"]
            same = sum(
                record.account is example.account
                and all(getattr(record, name) == value for name, value in equal.items())
                for record in mail
            )
            account = example.account
            ask = Ask("count", (), account.label, account.stream, equal=equal)
            yield ask, partial(str, same)

    def _absent(self) -> Iterator[_Planned]:
        """Pairs of words that no record has together; every second one has a word without hits."""
        apart = [pair for pair in combinations(QUERY_WORDS, 2) if not self.having(pair)]
        for number, (first, second) in enumerate(self._random.sample(apart, 12)):
            words = (f"{first[::-1]}x" if number % 2 else first, second)
            yield Ask("sentence", words), lambda: NONE

    def having(self, words: tuple[str, ...]) -> set[Record]:
        """The records with all of the words, when every text is complete."""
        return set.intersection(*(self._holders[word] for word in words))

    @cached_property
    def _holders(self) -> dict[str, set[Record]]:
        holders = defaultdict[str, set[Record]](set)
        for record in self.records:
            for word in set(re.findall(r"\w+", record.text.lower())):
                holders[word].add(record)
        return holders
