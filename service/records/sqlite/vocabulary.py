"""The words of the store, and how many records hold each in each field.

The counts change in the transaction of the records; a word that no value holds any more is gone.
"""

import sqlite3
from collections.abc import Iterable

import orjson

from service.records.vocabulary import Vocabulary, is_letter

_COUNT = """
INSERT INTO word_count (word, ordinal, n) VALUES (?, ?, ?)
ON CONFLICT (word, ordinal) DO UPDATE SET n = n + excluded.n
"""
_KNOWN = "SELECT w.text, w.id FROM json_each(?) j CROSS JOIN word w ON w.text = j.value"
_UNUSED = """
DELETE FROM word WHERE id = ? AND NOT EXISTS (SELECT 1 FROM word_count WHERE word = word.id)
"""


def apply(db: sqlite3.Connection, vocabulary: Vocabulary) -> None:
    """Writes what was noted."""
    changes = list(vocabulary.changes())
    ids = _ids(db, {word for word, _, _ in changes})
    rows = sorted((ids[word], ordinal, n) for word, ordinal, n in changes)
    db.executemany(_COUNT, rows)
    fewer = [(word, ordinal) for word, ordinal, n in rows if n < 0]
    db.executemany("DELETE FROM word_count WHERE word = ? AND ordinal = ? AND n <= 0", fewer)
    db.executemany(_UNUSED, ((word,) for word in sorted({word for word, _ in fewer})))
    db.executemany(
        "UPDATE scope SET words = words + ? WHERE ordinal = ?",
        ((length, ordinal) for ordinal, length in vocabulary.lengths.items() if length),
    )
    vocabulary.clear()


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
    letters = known | {char for char in set("".join(words)) - known if is_letter(char)}
    if letters != known:
        db.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('letters', ?)",
            ("".join(sorted(letters)),),
        )
