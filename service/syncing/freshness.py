"""How fresh sources are: the last try and the last success of each, in the sidecar of the store."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from service.access.entries import FOREVER, Entries

_KIND: Final = "source"
#: A source is late when its last success is more than so many of its intervals ago.
LATE_INTERVALS: Final = 3
OK, LATE, FAILED, PAUSED = "ok", "late", "failed", "paused"


@dataclass(frozen=True, slots=True)
class Freshness:
    """A source of a connection. Times are seconds since 1970; `every` is its interval.

    `complete_until` is the start of the last round that read everything. `failure` is for the
    owner alone.
    """

    name: str
    connection: str
    every: int
    tried_at: int = 0
    synced_at: int = 0
    complete_until: int = 0
    failure: str = ""
    is_paused: bool = False

    def state(self, now: datetime) -> str:
        """`ok`, `late`, `failed` or `paused`."""
        if self.is_paused:
            return PAUSED
        if self.failure:
            return FAILED
        age = now.timestamp() - self.synced_at
        return LATE if age > LATE_INTERVALS * self.every else OK


def all_sources(entries: Entries) -> dict[str, Freshness]:
    """The freshness of all sources that were tried, by name."""
    with entries.reading() as entry_rows:
        return {
            name: Freshness(**entry.body)
            for name, owned in sorted(entry_rows.owned(_KIND).items())
            for entry in owned
        }


def save(entries: Entries, freshness: Freshness) -> None:
    """Notes the freshness of a source."""
    with entries.changing() as entry_rows:
        name = freshness.name
        entry_rows.put(_KIND, name, asdict(freshness), seconds=FOREVER, owner=name)


def forget(entries: Entries, name: str) -> None:
    """Removes what is noted of a source."""
    with entries.changing() as entry_rows:
        entry_rows.remove(_KIND, name)
