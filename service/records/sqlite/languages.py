"""The languages of a connection, by a sample of its texts: search looks for word forms in them."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from evidence.language import MOST_LANGUAGES, detect

#: Texts of one import that are looked at, and how much of each.
SAMPLE_TEXTS: Final = 400
SAMPLE_CHARS: Final = 1_000
#: A shorter text, as a name or a word of a vocabulary, says little.
SHORTEST_CHARS: Final = 40
#: The first records of an import are all looked at, then one in so many.
FIRST_RECORDS: Final = 50
THEN_ONE_IN: Final = 40


class Sample:
    """Texts of one import, up to 400 for each connection."""

    def __init__(self) -> None:
        self._records = Counter[int]()
        self._texts: dict[int, list[str]] = {}
        self._looked_at: dict[int, int] = {}

    def take(self, connection: int, data: dict[str, Any]) -> None:
        """Takes the texts of a record if it is its turn."""
        number = self._records[connection]
        self._records[connection] += 1
        if number >= FIRST_RECORDS and number % THEN_ONE_IN:
            return
        texts = self._texts.setdefault(connection, [])
        if len(texts) < SAMPLE_TEXTS:
            texts += _texts(data)

    def note(self, db: sqlite3.Connection) -> None:
        """Adds the languages of the texts to those of their connections."""
        for connection, texts in self._texts.items():
            if len(texts) > self._looked_at.get(connection, 0):
                self._looked_at[connection] = len(texts)
                add_languages(db, connection, detect(texts))


def add_languages(db: sqlite3.Connection, connection: int, found: Iterable[str]) -> None:
    """Adds languages behind those that a connection is known to have, four at most."""
    (known,) = db.execute("SELECT languages FROM connection WHERE id = ?", (connection,)).fetchone()
    before = orjson.loads(known)
    after = list(dict.fromkeys([*before, *found]))[:MOST_LANGUAGES]
    if after != before:
        db.execute(
            "UPDATE connection SET languages = ? WHERE id = ?",
            (orjson.dumps(after).decode(), connection),
        )


def _texts(data: dict[str, Any]) -> Iterator[str]:
    for value in data.values():
        if isinstance(value, str) and len(value) > SHORTEST_CHARS:
            yield value[:SAMPLE_CHARS]
