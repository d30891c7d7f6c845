"""How fresh sources are: when each was last tried and last synced, in the store's sidecar."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Final

from evidence.errors import EvidenceError
from evidence.model import SYNC_STATES, SyncStatus, members
from evidence.times import to_the_second
from service.access.entries import FOREVER, Entries
from service.access.sidecar import Sidecar

_KIND: Final = "source"
#: A source is late when its last success is more than so many of its intervals ago.
LATE_INTERVALS: Final = 3
#: How old the freshness that answers use may be.
MAX_AGE: Final = timedelta(seconds=5)
FAILED, PAUSED, LATE, OK = SYNC_STATES


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

    def age(self, now: datetime) -> float:
        """Seconds since the last success; infinite if there was none."""
        return now.timestamp() - self.synced_at if self.synced_at else inf

    def is_late(self, now: datetime) -> bool:
        """Whether the last success is too long ago, also if the source is paused or failed."""
        return self.age(now) > LATE_INTERVALS * self.every

    def state(self, now: datetime) -> str:
        """`ok`, `late`, `failed` or `paused`."""
        if self.is_paused:
            return PAUSED
        if self.failure:
            return FAILED
        return LATE if self.is_late(now) else OK

    def json(self, now: datetime) -> dict[str, Any]:
        """The source with its state, last success and failure, for the owner."""
        times = {name: time_text(getattr(self, name)) for name in ("synced_at", "complete_until")}
        return members(self, "name", "connection", "failure") | {"state": self.state(now)} | times

    def described(self, now: datetime) -> str:
        """The same as text."""
        return f"{self.name} into {self.connection}: {describe(self.json(now))}"


def describe(source: Mapping[str, Any]) -> str:
    """A state with the last success and the failure, for the owner."""
    synced = f", last success {source['synced_at']}" if source["synced_at"] else ""
    return f"{source['state']}{synced}{': ' if source['failure'] else ''}{source['failure']}"


def time_text(seconds: int) -> str | None:
    """The time as RFC 3339; None for 0."""
    return to_the_second(datetime.fromtimestamp(seconds, UTC)) if seconds else None


class SourceStates:
    """The sources of a store that were tried, as they were at most `MAX_AGE` ago.

    While the sidecar cannot be read, they stay as they were. Safe to share between threads.
    """

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._sources: tuple[Freshness, ...] = ()
        self._read_at = datetime.min.replace(tzinfo=UTC)

    def all(self, now: datetime) -> tuple[Freshness, ...]:
        """The sources by name."""
        if abs(now - self._read_at) >= MAX_AGE:
            self._read_at = now
            if self._sidecar.exists():
                with suppress(EvidenceError):
                    self._sources = tuple(all_sources(Entries(self._sidecar)).values())
        return self._sources

    def statuses(self, now: datetime, among: Collection[str]) -> dict[str, SyncStatus]:
        """How up to date connections are, by id. Several sources have the worst state of them."""
        by_connection = dict[str, list[Freshness]]()
        for source in self.all(now):
            if source.connection in among:
                by_connection.setdefault(source.connection, []).append(source)
        return {
            connection: SyncStatus(
                min((source.state(now) for source in group), key=SYNC_STATES.index),
                time_text(min(source.synced_at for source in group)),
                time_text(min(source.complete_until for source in group)),
                any(source.failure or source.is_late(now) for source in group),
            )
            for connection, group in by_connection.items()
        }


def all_sources(entries: Entries) -> dict[str, Freshness]:
    """The freshness of all sources that were tried, by name."""
    with entries.reading() as entry_rows:
        by_name = sorted(entry_rows.owned(_KIND).items())
    return {name: Freshness(**entry.body) for name, (entry,) in by_name}


def save(entries: Entries, freshness: Freshness) -> None:
    """Notes the freshness of a source."""
    with entries.changing() as entry_rows:
        name = freshness.name
        entry_rows.put(_KIND, name, asdict(freshness), seconds=FOREVER, owner=name)


def forget(entries: Entries, name: str) -> None:
    """Removes what is noted of a source."""
    with entries.changing() as entry_rows:
        entry_rows.remove(_KIND, name)
