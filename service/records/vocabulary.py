"""The words of the store, and how many records hold each in each field.

A value counts once for every word it holds, however often and in however many passages. The counts
change in the transaction of the records; a word that no value holds any more is gone.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from evidence.fold import fold
from evidence.limits import CONTRACT
from evidence.question import is_unspaced

#: What `is_unspaced` is true of, if it stands alone.
_UNSPACED = re.compile("[\u0e00-\U0010ffff]")

_Counts = defaultdict[int, Counter[str]]


def counted(length: int, folded: str) -> int:
    """What a value adds to the length of its field: a long one no more than one passage of it."""
    return min(length, length * CONTRACT.passage_chars // max(1, len(folded)))


def words_of(folded: str) -> tuple[set[str], int]:
    """(the words of a folded text, its length in words).

    Two adjacent characters of a script without spaces are a word too: one alone says little.
    """
    run = folded.split()
    words = set(run)
    if not folded.isascii() and _UNSPACED.search(folded):
        words.update(
            first + second
            for first, second in zip(run, run[1:])
            if is_unspaced(first) and is_unspaced(second)
        )
    return words, len(run)


@dataclass(slots=True)
class Vocabulary:
    """What one batch changes in the words of the store."""

    added: _Counts = field(default_factory=lambda: defaultdict(Counter))
    removed: _Counts = field(default_factory=lambda: defaultdict(Counter))
    lengths: Counter[int] = field(default_factory=Counter)

    def add(self, ordinal: int, folded: str) -> int:
        """Notes the words of a value; returns how many there are, repeats included."""
        words, length = words_of(folded)
        self.added[ordinal].update(words)
        self.lengths[ordinal] += counted(length, folded)
        return length

    def remove(self, ordinal: int, folded: str) -> None:
        """Notes that a value is no more."""
        words, length = words_of(folded)
        self.removed[ordinal].update(words)
        self.lengths[ordinal] -= counted(length, folded)

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
