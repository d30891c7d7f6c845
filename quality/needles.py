"""A made-up collection: two words in one sentence of a long record, and apart in many others.

The right answer is the long record. Short decoys contain both words too, but far apart; so do two
of the other long records. All words are invented, and the same in every run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from random import Random

from quality.collections import Collection, Document, Query

TASKS = 48
LONG_RECORDS = 12
LONG_CHARS = 200_000
SHORT_DECOYS, LONG_DECOYS = 8, 2
SHORT_CHARS = (1_200, 4_000)
#: How often a long record repeats each of its words elsewhere, as long texts do.
REPEATS = (1, 4)
#: Records that contain only one word of a task.
SINGLES = 6
VOCABULARY = 3_000
SENTENCE = (8, 18)
#: The most words between the two words of a task in their sentence.
BETWEEN = 4
GROUP = "texts"

Sentence = list[str]


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes sentences of invented words; a few words are common, most are rare."""

    random: Random
    words: Sequence[str]
    weights: Sequence[float]

    def text(self, chars: int) -> list[Sentence]:
        """Sentences with at least `chars` characters in total."""
        sentences: list[Sentence] = []
        size = 0
        while size < chars:
            length = self.random.randint(*SENTENCE)
            words = self.random.choices(self.words, cum_weights=self.weights, k=length)
            sentences.append(words)
            size += sum(map(len, words)) + length + 1
        return sentences

    def together(self, sentences: list[Sentence], pair: Sequence[str]) -> None:
        """Puts both words into one sentence anywhere in the text."""
        sentence = self.random.choice(sentences)
        first = self.random.randrange(len(sentence) - BETWEEN)
        sentence.insert(first, pair[0])
        sentence.insert(first + 1 + self.random.randrange(BETWEEN + 1), pair[1])

    def apart(self, sentences: list[Sentence], pair: Sequence[str]) -> None:
        """Puts one word into the first third of the text, and the other into the last third."""
        third = len(sentences) // 3
        early, late = self.random.sample(pair, 2)
        for word, start in ((early, 0), (late, len(sentences) - third)):
            for _ in range(self.random.randint(1, 2)):
                self.alone(sentences[start : start + third], word)

    def repeat(self, sentences: list[Sentence], pair: Sequence[str]) -> None:
        """Puts each word into some sentences of its own half of the text."""
        half = len(sentences) // 2
        for word, start in zip(pair, (0, half)):
            for _ in range(self.random.randint(*REPEATS)):
                self.alone(sentences[start : start + half], word)

    def alone(self, sentences: list[Sentence], word: str) -> None:
        sentence = self.random.choice(sentences)
        sentence.insert(self.random.randrange(len(sentence)), word)


def make(seed: int = 1) -> Collection:
    """The collection of a seed."""
    random = Random(seed)
    words = list(islice(_invented(random), VOCABULARY + 2 * TASKS))
    weights = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    writer = Writer(random, words[:VOCABULARY], weights)
    pairs = list(zip(words[VOCABULARY::2], words[VOCABULARY + 1 :: 2], strict=True))
    texts = [writer.text(LONG_CHARS) for _ in range(LONG_RECORDS)]
    queries = []
    for task, pair in enumerate(pairs):
        right, *others = random.sample(range(LONG_RECORDS), 1 + LONG_DECOYS)
        writer.together(texts[right], pair)
        for other in others:
            writer.apart(texts[other], pair)
        for place in (right, *others):
            writer.repeat(texts[place], pair)
        for _ in range(SHORT_DECOYS):
            texts.append(writer.text(random.randint(*SHORT_CHARS)))
            writer.apart(texts[-1], pair)
        for _ in range(SINGLES):
            texts.append(writer.text(random.randint(*SHORT_CHARS)))
            writer.alone(texts[-1], random.choice(pair))
        queries.append(Query(f"needle-{task}", GROUP, " ".join(pair), "needles", {f"{right}": 1}))
    documents = [_document(number, text) for number, text in enumerate(texts)]
    return Collection("needles", "invented texts, some of 200,000 characters", documents, queries)


def _document(number: int, sentences: list[Sentence]) -> Document:
    text = " ".join(f"{' '.join(words).capitalize()}." for words in sentences)
    return {"id": f"{number}", "group": GROUP, "text": text, "at": "2026-01-01T00:00:00Z"}


def _invented(random: Random) -> Iterator[str]:
    """Words of two to four syllables, each once; none ends like an inflected English word."""
    seen: set[str] = set()
    while True:
        syllables = (random.choice("bdfgklmnprtvz") + random.choice("aeou") for _ in range(4))
        word = "".join(islice(syllables, random.randint(2, 4))) + random.choice("kmp")
        if word not in seen:
            seen.add(word)
            yield word
