"""The languages of a connection, by a sample of its texts: search looks for word forms in them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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

    def found(self) -> Iterator[tuple[int, Sequence[str]]]:
        """Connections of which there are new texts, each with the languages of all its texts."""
        for connection, texts in self._texts.items():
            if len(texts) > self._looked_at.get(connection, 0):
                self._looked_at[connection] = len(texts)
                yield connection, detect(texts)


def merged(known: str, detected: Iterable[str]) -> str | None:
    """The languages of a connection as JSON, four at most; None if there is no new one."""
    before = orjson.loads(known)
    after = list(dict.fromkeys([*before, *detected]))[:MOST_LANGUAGES]
    return None if after == before else orjson.dumps(after).decode()


def _texts(data: dict[str, Any]) -> Iterator[str]:
    for value in data.values():
        if isinstance(value, str) and len(value) > SHORTEST_CHARS:
            yield value[:SAMPLE_CHARS]
