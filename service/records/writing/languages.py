"""Detects each searched field's languages from a sample of texts, for search by word forms."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from evidence.language import MOST_LANGUAGES, evident, lead
from service.records.writing.derived import texts_of
from service.records.engine.scopes import StreamHandle

#: The number of texts of a field that are examined in an import, and the length of each.
SAMPLE_TEXTS: Final = 400
SAMPLE_CHARS: Final = 1_000
#: A shorter text, such as a name or a vocabulary word, reveals little.
SHORTEST_CHARS: Final = 40
#: The first records of a stream in an import are all examined, then one in this many.
FIRST_RECORDS: Final = 50
THEN_EVERY: Final = 40
#: A language with a smaller lead over all texts may be chance.
LEAST_LEAD: Final = 2


class Sample:
    """The languages in the texts of an import, up to 400 per field."""

    def __init__(self) -> None:
        self._records, self._texts = Counter[int](), Counter[int]()
        self._leads: dict[int, Counter[str]] = {}
        self._changed: set[int] = set()

    def take(self, stream: StreamHandle, data: dict[str, Any]) -> None:
        """Examines the texts of a record if it belongs to the sample."""
        number = self._records[stream.id]
        self._records[stream.id] += 1
        if number >= FIRST_RECORDS and number % THEN_EVERY:
            return
        for ordinal, text, _ in texts_of(stream.scopes, data, {}):
            if len(text) > SHORTEST_CHARS and self._texts[ordinal] < SAMPLE_TEXTS:
                self._leads.setdefault(ordinal, Counter()).update(lead(text[:SAMPLE_CHARS]))
                self._texts[ordinal] += 1
                self._changed.add(ordinal)

    def detected(self) -> Iterator[tuple[int, Sequence[str]]]:
        """Fields with new texts, each with the languages of all its texts."""
        while self._changed:
            ordinal = self._changed.pop()
            yield ordinal, sure(self._leads[ordinal])


def sure(leads: Counter[str]) -> list[str]:
    """The languages that are no chance, by their leads in some texts."""
    return [language for language in evident(leads) if leads[language] >= LEAST_LEAD]


def merged(stored: str, detected: Iterable[str]) -> str | None:
    """The languages of a field as JSON, at most four; None if there is no new one."""
    before = orjson.loads(stored)
    after = list(dict.fromkeys([*before, *detected]))[:MOST_LANGUAGES]
    return None if after == before else orjson.dumps(after).decode()
