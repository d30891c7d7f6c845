"""Caches the words that a writer has recently written, so that their ids need no second lookup."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

#: The most words whose ids are cached.
RECENT_WORDS: Final = 100_000


@dataclass(slots=True)
class RecentWords:
    """The ids of words that this process has recently written, and the reverse.

    They hold until a transaction fails or another process writes. `keyed` has the crowded words,
    with fields in which they have keys.
    """

    ids: dict[str, int] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    keyed: dict[int, set[int]] = field(default_factory=dict)
    version: int = 0

    def use(self, version: int) -> None:
        """Clears the words unless `PRAGMA data_version` is the same as before."""
        if version != self.version:
            self.clear()
        self.version = version

    def add(self, text: str, word: int) -> None:
        self.ids[text], self.texts[word] = word, text

    def add_crowded(self, word: int) -> None:
        self.keyed[word] = set()

    def add_keyed(self, rows: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
        """Adds the (word, ordinal) that may lack keys, and returns them."""
        keyed = self.keyed
        pairs = [
            (word, ordinal)
            for word, ordinal, _ in rows
            if word in keyed and ordinal not in keyed[word]
        ]
        for word, ordinal in pairs:
            keyed[word].add(ordinal)
        return pairs

    def drop_keyed(self, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Drops the (word, ordinal) that have keys, and returns them."""
        pairs = [pair for pair in pairs if pair[0] in self.keyed]
        for word, ordinal in pairs:
            self.keyed[word].discard(ordinal)
        return pairs

    def drop(self, words: Iterable[int]) -> None:
        for word in words:
            del self.ids[self.texts.pop(word)]
            self.keyed.pop(word, None)

    def bound(self) -> None:
        """Clears the words if there are too many."""
        if len(self.ids) > RECENT_WORDS:
            self.clear()

    def clear(self) -> None:
        for words in (self.ids, self.texts, self.keyed):
            words.clear()
