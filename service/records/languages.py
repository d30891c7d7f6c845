"""The languages of a connection, from a sample of its texts: search uses their word forms."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from evidence.language import MOST_LANGUAGES, evident, lead

#: The number of texts of an import that are examined, and the length of each.
SAMPLE_TEXTS: Final = 400
SAMPLE_CHARS: Final = 1_000
#: A shorter text, such as a name or a vocabulary word, reveals little.
SHORTEST_CHARS: Final = 40
#: The first records of an import are all examined, then one in this many.
FIRST_RECORDS: Final = 50
THEN_ONE_IN: Final = 40
#: A language with a smaller lead over all texts may be chance.
LEAST_LEAD: Final = 2


class Sample:
    """The languages in the texts of an import, up to 400 per connection."""

    def __init__(self) -> None:
        self._records, self._texts = Counter[int](), Counter[int]()
        self._leads: dict[int, Counter[str]] = {}
        self._changed: set[int] = set()

    def take(self, connection: int, data: dict[str, Any]) -> None:
        """Examines the texts of a record if it belongs to the sample."""
        number = self._records[connection]
        self._records[connection] += 1
        if number >= FIRST_RECORDS and number % THEN_ONE_IN:
            return
        if self._texts[connection] < SAMPLE_TEXTS:
            leads = self._leads.setdefault(connection, Counter())
            for text in _texts(data):
                leads.update(lead(text))
                self._texts[connection] += 1
            self._changed.add(connection)

    def found(self) -> Iterator[tuple[int, Sequence[str]]]:
        """Connections with new texts, each with the languages of all its texts."""
        while self._changed:
            connection = self._changed.pop()
            leads = self._leads[connection]
            yield connection, [one for one in evident(leads) if leads[one] >= LEAST_LEAD]


def merged(known: str, detected: Iterable[str]) -> str | None:
    """The languages of a connection as JSON, at most four; None if there is no new one."""
    before = orjson.loads(known)
    after = list(dict.fromkeys([*before, *detected]))[:MOST_LANGUAGES]
    return None if after == before else orjson.dumps(after).decode()


def _texts(data: dict[str, Any]) -> Iterator[str]:
    for value in data.values():
        if isinstance(value, str) and len(value) > SHORTEST_CHARS:
            yield value[:SAMPLE_CHARS]
