"""The words of the store, and how many records have each word in each field.

A value counts once for every word it contains, however often and in however many passages. The
counts change in the transaction of the records; a word that no value contains any more is deleted.

Words that a hyphen joins, and numbers in parts, are entries too, with spaces between their parts.

`word_key` leads from a misspelled word to the words of a field that may have been meant: two words
of the same length one edit apart are equal if each loses the right letter, and a word that lacks a
letter is what the other one is without it. So each word has the keys of all its `shortened` forms.
It has keys of its endings too, so that its compounds are found, and an entry in parts has the key
of these together; a number has that of its last digits.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final
from zlib import crc32

from evidence.fold import fold
from evidence.language import REPAIRED_CHARS, is_repairable, shortened
from evidence.limits import CONTRACT
from evidence.question import is_unspaced
from evidence.word_parts import NUMBER_DIGITS, PART_CHARS, is_number, joined

#: The most distinct words that are kept in memory.
MOST_WORDS: Final = 100_000
#: The most passes over one text.
MOST_PARTS: Final = 64
#: Characters of a text that are split at once, and the interval of words for sampling.
RUN_CHARS: Final = 1 << 20
SAMPLED: Final = 64
_SPACE = re.compile(r"\s")
#: Characters for which `is_unspaced` is true if they are words by themselves.
_UNSPACED = re.compile("[\u0e00-\U0010ffff]")

_Counts = defaultdict[int, Counter[str]]


def counted(length: int, folded: str) -> int:
    """What a value adds to the length of its field; a long one adds no more than one passage."""
    return min(length, length * CONTRACT.passage_chars // max(1, len(folded)))


def words_of(folded: str) -> Iterator[tuple[set[str], int]]:
    """(words of a folded text, how often they occur), in disjoint sets.

    A text with many different words takes several passes, one for each set, so that each set fits
    into memory. Two adjacent characters of a script without spaces are a word too: one alone says
    little.
    """
    spaced = folded.isascii() or not _UNSPACED.search(folded)
    if spaced and len(folded) <= RUN_CHARS:
        run = folded.split()
        yield set(run), len(run)
        return
    parts = _parts(folded, spaced)
    for part in range(parts):
        words, length = set[str](), 0
        for run, pairs in _runs(folded, spaced):
            if parts > 1:
                run = [word for word in run if hash(word) % parts == part]
                pairs = [pair for pair in pairs if hash(pair) % parts == part]
            words.update(run, pairs)
            length += len(run)
        yield words, length


def _parts(folded: str, spaced: bool) -> int:
    """The number of sets for the words, estimated from the distinct words in a sample."""
    if len(folded) <= RUN_CHARS:
        return 1
    seen = set[str]()
    for run, pairs in _runs(folded, spaced):
        seen.update(word for word in {*run, *pairs} if hash(word) % SAMPLED == 0)
    return min(MOST_PARTS, len(seen) * SAMPLED // MOST_WORDS + 1)


def _runs(folded: str, spaced: bool) -> Iterator[tuple[list[str], list[str]]]:
    """(words, pairs of adjacent characters of unspaced scripts), one part of the text at a time."""
    start, last = 0, ""
    while start < len(folded):
        space = _SPACE.search(folded, start + RUN_CHARS)
        end = space.start() if space else len(folded)
        run = folded[start:end].split()
        pairs = []
        if not spaced and run:
            near = pairwise([last, *run] if last else run)
            pairs = [a + b for a, b in near if is_unspaced(a) and is_unspaced(b)]
            last = run[-1]
        yield run, pairs
        start = end


@dataclass(slots=True)
class Vocabulary:
    """The changes of one batch to the words of the store.

    `write` is called when many words have been collected. It may write them and call `clear`.
    """

    write: Callable[["Vocabulary"], None] = lambda noted: None
    added: _Counts = field(default_factory=lambda: defaultdict(Counter))
    removed: _Counts = field(default_factory=lambda: defaultdict(Counter))
    lengths: Counter[int] = field(default_factory=Counter)

    def add(self, ordinal: int, text: str, folded: str) -> int:
        """Adds the words of a value; returns how many there are, repeats included."""
        length = self._note(self.added, ordinal, text, folded)
        self.lengths[ordinal] += counted(length, folded)
        return length

    def remove(self, ordinal: int, text: str) -> None:
        """Subtracts the words of a deleted value."""
        folded = fold(text)
        length = self._note(self.removed, ordinal, text, folded)
        self.lengths[ordinal] -= counted(length, folded)

    def _note(self, noted: _Counts, ordinal: int, text: str, folded: str) -> int:
        total = 0
        if parts := {" ".join(found.words) for found in joined(text)}:
            noted[ordinal].update(parts)
        for words, length in words_of(folded):
            total += length
            noted[ordinal].update(words)
            if sum(map(len, noted.values())) > MOST_WORDS:
                self.write(self)
        return total

    def changes(self) -> Iterator[tuple[str, int, int]]:
        """(word, ordinal, change of its count), for the words that a query can contain."""
        for ordinal in {*self.added, *self.removed}:
            counts = self.added[ordinal]
            if ordinal in self.removed:
                counts.subtract(self.removed[ordinal])
            for word, n in counts.items():
                if n and len(word) <= CONTRACT.query_chars:
                    yield word, ordinal, n

    def clear(self) -> None:
        """Discards the collected changes."""
        for noted in (self.added, self.removed, self.lengths):
            noted.clear()


_ENDING: Final = crc32(b"-")
_SIGN: Final = 1 << 31
#: The longest words with keys: longer ones are rarely words.
KEYED_CHARS: Final = 48


def key_of(text: str) -> int:
    """A hash of a text, 32 bits with a sign."""
    return crc32(text.encode()) - _SIGN


def keys_of(word: str) -> set[int]:
    """The keys of an entry; none of a word that is too short or too long, or an id."""
    together = word.replace(" ", "")
    if together != word or is_number(word):
        return {joined_key(together)}
    if not REPAIRED_CHARS <= len(word) <= KEYED_CHARS or not is_repairable(word):
        return set()
    starts = range(PART_CHARS, len(word) - PART_CHARS + 1)
    if not word.isascii():
        endings = (word[start:] for start in starts)
        return {*map(key_of, shortened(word)), *map(ending_key, endings)}
    raw = word.encode()  # the same keys in half the time
    keys = {crc32(raw[end + 1 :], crc32(raw[:end])) - _SIGN for end in range(1, len(raw))}
    keys.update([crc32(raw[start:], _ENDING) - _SIGN for start in starts])
    return keys


def joined_key(word: str) -> int:
    """The key of a word in parts, or of a number."""
    return key_of(f"+{word[-NUMBER_DIGITS:] if is_number(word) else word}")


def ending_key(word: str) -> int:
    """The key of longer words that end with a word."""
    return key_of(f"-{word}")
