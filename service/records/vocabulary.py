"""The words of the store, and how many records hold each in each field.

A value counts once for every word it holds, however often and in however many passages. The counts
change in the transaction of the records; a word that no value holds any more is gone.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from evidence.fold import fold
from evidence.limits import CONTRACT
from evidence.question import is_unspaced

#: Distinct words that are noted in memory, and the characters of a text whose words are.
MOST_WORDS: Final = 100_000
PART_CHARS: Final = 1 << 20
_WORD = re.compile(r"\S+")
#: What `is_unspaced` is true of, if it stands alone.
_UNSPACED = re.compile("[\u0e00-\U0010ffff]")

_Counts = defaultdict[int, Counter[str]]


def counted(length: int, folded: str) -> int:
    """What a value adds to the length of its field: a long one no more than one passage of it."""
    return min(length, length * CONTRACT.passage_chars // max(1, len(folded)))


def words_of(folded: str) -> Iterator[tuple[set[str], int]]:
    """(words of a folded text, how often they occur), in sets that have no word in common.

    A long text has several sets, so that each fits into memory. Two adjacent characters of a script
    without spaces are a word too: one alone says little.
    """
    parts = len(folded) // PART_CHARS + 1
    spaced = folded.isascii() or not _UNSPACED.search(folded)
    for part in range(parts):
        if parts == 1:
            run = folded.split()
            words, length = set(run), len(run)
        else:
            words, length = set(), 0
            for word in _words_in(folded):
                if hash(word) % parts == part:
                    words.add(word)
                    length += 1
        if not spaced:
            words.update(
                first + second
                for first, second in pairwise(_words_in(folded))
                if is_unspaced(first)
                and is_unspaced(second)
                and hash(first + second) % parts == part
            )
        yield words, length


def _words_in(folded: str) -> Iterator[str]:
    return (found[0] for found in _WORD.finditer(folded))


@dataclass(slots=True)
class Vocabulary:
    """What one batch changes in the words of the store.

    `write` is called when many words are noted. It may write them, and `clear` what was noted.
    """

    write: Callable[["Vocabulary"], None] = lambda noted: None
    added: _Counts = field(default_factory=lambda: defaultdict(Counter))
    removed: _Counts = field(default_factory=lambda: defaultdict(Counter))
    lengths: Counter[int] = field(default_factory=Counter)

    def add(self, ordinal: int, folded: str) -> int:
        """Notes the words of a value; returns how many there are, repeats included."""
        length = self._note(self.added, ordinal, folded)
        self.lengths[ordinal] += counted(length, folded)
        return length

    def remove(self, ordinal: int, folded: str) -> None:
        """Notes that a value is no more."""
        length = self._note(self.removed, ordinal, folded)
        self.lengths[ordinal] -= counted(length, folded)

    def _note(self, noted: _Counts, ordinal: int, folded: str) -> int:
        total = 0
        for words, length in words_of(folded):
            total += length
            noted[ordinal].update(words)
            if sum(map(len, noted.values())) > MOST_WORDS:
                self.write(self)
        return total

    def changes(self) -> Iterator[tuple[str, int, int]]:
        """(word, ordinal, change of its count), for the words that a query can name."""
        for ordinal in {*self.added, *self.removed}:
            counts = self.added[ordinal]
            if ordinal in self.removed:
                counts.subtract(self.removed[ordinal])
            for word, n in counts.items():
                if n and len(word) <= CONTRACT.query_chars:
                    yield word, ordinal, n

    def clear(self) -> None:
        """Forgets what was noted."""
        for noted in (self.added, self.removed, self.lengths):
            noted.clear()


def is_letter(char: str) -> bool:
    """Whether a character is a letter of a script that separates words with spaces."""
    return not char.isnumeric() and " " not in fold(char)
