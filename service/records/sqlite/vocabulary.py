"""The words of the store, and how many records hold each in each field.

A value counts once for every word it holds, however often and in however many passages. The counts
change in the transaction of the records; a word that no value holds any more is gone.
"""

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import orjson

from evidence.fold import fold
from evidence.limits import CONTRACT
from evidence.question import is_unspaced

_COUNT = """
INSERT INTO word_count (word, ordinal, n) VALUES (?, ?, ?)
ON CONFLICT (word, ordinal) DO UPDATE SET n = n + excluded.n
"""
_KNOWN = "SELECT w.text, w.id FROM json_each(?) j CROSS JOIN word w ON w.text = j.value"
_UNUSED = """
DELETE FROM word WHERE id = ? AND NOT EXISTS (SELECT 1 FROM word_count WHERE word = word.id)
"""

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

    def apply(self, db: sqlite3.Connection) -> None:
        """Writes what was noted."""
        changes = list(self._changes())
        ids = _ids(db, {word for word, _, _ in changes})
        rows = sorted((ids[word], ordinal, n) for word, ordinal, n in changes)
        db.executemany(_COUNT, rows)
        fewer = [(word, ordinal) for word, ordinal, n in rows if n < 0]
        db.executemany("DELETE FROM word_count WHERE word = ? AND ordinal = ? AND n <= 0", fewer)
        db.executemany(_UNUSED, ((word,) for word in sorted({word for word, _ in fewer})))
        db.executemany(
            "UPDATE scope SET words = words + ? WHERE ordinal = ?",
            ((length, ordinal) for ordinal, length in self.lengths.items() if length),
        )
        for noted in (self.added, self.removed, self.lengths):
            noted.clear()

    def _changes(self) -> Iterator[tuple[str, int, int]]:
        """(word, ordinal, change of its count), for the words that a query can name."""
        for ordinal in {*self.added, *self.removed}:
            counts = self.added[ordinal]
            if ordinal in self.removed:
                counts.subtract(self.removed[ordinal])
            for word, n in counts.items():
                if n and len(word) <= CONTRACT.query_chars:
                    yield word, ordinal, n


def forget(db: sqlite3.Connection) -> None:
    """Empties the vocabulary, in the transaction of the caller."""
    db.execute("DELETE FROM word_count")
    db.execute("DELETE FROM word")
    db.execute("DELETE FROM meta WHERE key = 'letters'")
    db.execute("UPDATE scope SET words = 0")


def _ids(db: sqlite3.Connection, words: set[str]) -> dict[str, int]:
    """The ids of some words, given to those that have none."""
    found: dict[str, int] = dict(db.execute(_KNOWN, (orjson.dumps(sorted(words)).decode(),)))
    new = sorted(words - found.keys())
    if new:
        (last,) = db.execute("SELECT coalesce(max(id), 0) FROM word").fetchone()
        given = list(zip(new, range(last + 1, last + 1 + len(new))))
        db.executemany("INSERT INTO word (text, id) VALUES (?, ?)", given)
        found.update(given)
        _note_letters(db, new)
    return found


def _note_letters(db: sqlite3.Connection, words: Iterable[str]) -> None:
    """Adds the letters of new words to those of the store."""
    row = db.execute("SELECT value FROM meta WHERE key = 'letters'").fetchone()
    known = set() if row is None else set(row[0])
    letters = known | {char for char in set("".join(words)) - known if _is_letter(char)}
    if letters != known:
        db.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('letters', ?)",
            ("".join(sorted(letters)),),
        )


def _is_letter(char: str) -> bool:
    """Whether words are spelled with it; a character of an unspaced script stands for itself."""
    return not char.isnumeric() and " " not in fold(char)
