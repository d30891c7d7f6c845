"""The sidecar of a store: small tables that change often. An import never delays their changes.

    with sidecar.transaction(writes=False) as rows:
        uses = rows("SELECT day, count FROM access_use WHERE grant_id = ?", "grt_1")
        rows.now

`now` decides every expiry. It is the latest time that a process has seen, the mark, if that is
later than the clock. A clock that is more than a minute behind the mark was set back: then whatever
the mark had ended is ended for good, all sessions end, and the mark becomes the clock.

The engine of the store keeps the tables; all engines share the SQL of statements, with `?` for
values.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from evidence.errors import EvidenceError
from service.access.port import AccessTables, Run

logger = logging.getLogger(__name__)

#: Ends the grants and packages of the store that had expired at a time, as of another time.
EndGrants = Callable[[datetime, datetime], None]

#: A clock that is further behind the latest time seen was set back.
BEHIND: Final = timedelta(minutes=1)
#: How old the stored mark may be.
_MARK_AGE: Final = timedelta(seconds=1)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_MARK: Final = "(SELECT seen FROM access_clock WHERE id = 1)"
_RAISE: Final = (
    "INSERT INTO access_clock (id, seen) VALUES (1, ?) ON CONFLICT (id) DO UPDATE"
    " SET seen = excluded.seen WHERE access_clock.seen < excluded.seen"
)
_SET_BACK: Final = (
    "UPDATE access_clock SET seen = ? WHERE id = 1 AND seen = ? RETURNING id",
    "DELETE FROM access_entry WHERE kind = 'session' OR expires_at <= ?",
    # What is left keeps its remaining lifetime.
    "UPDATE access_entry SET expires_at = expires_at - ?, used_at = used_at - ?",
)


@dataclass(frozen=True, slots=True)
class Rows:
    """Runs statements of one transaction.

    `clock` is the time at its beginning, `ahead` how far it is ahead of this machine's, `mark` the
    latest time seen. `refusal` is raised instead of adding entries, which would live too long: the
    clock was set back, and grants could not be ended.
    """

    run: Run
    clock: datetime
    mark: datetime
    ahead: timedelta = timedelta()
    refusal: EvidenceError | None = None

    def __call__(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Runs a statement with its values and returns all rows."""
        return self.run(sql, *values)

    @property
    def now(self) -> datetime:
        """The time that decides every expiry."""
        return max(self.clock, self.mark)


class Sidecar:
    """The sidecar of one store. Opens nothing until it is used. Safe to share between threads.

    On a read-only disk, and for a store that nobody writes to, it is off: every transaction
    raises `Unavailable` (`access_off`) with the reason. Without `end_grants`, a clock that was set
    back has no effect until it reaches the mark.
    """

    def __init__(self, tables: AccessTables, end_grants: EndGrants | None = None) -> None:
        self._tables, self._end_grants = tables, end_grants
        self.exists, self.store_exists = tables.exists, tables.store_exists
        self.close = tables.close

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[Rows]:
        """One transaction.

        Its writes are durable if it ends without an exception. Without `writes` it reads one
        snapshot and does not wait for writers. Raises `Unavailable` if the sidecar is off, or still
        busy after `BUSY_SECONDS`.
        """
        with ExitStack() as stack:
            rows = stack.enter_context(self._begin(writes))
            if writes and rows.mark - rows.clock > BEHIND and self._end_grants:
                stack.close()
                refusal = self._set_back(rows.mark, rows.clock, self._end_grants)
                rows = replace(stack.enter_context(self._begin(writes)), refusal=refusal)
            if writes and rows.clock - rows.mark >= _MARK_AGE:
                rows(_RAISE, _text(rows.clock))
            yield rows

    def _set_back(self, mark: datetime, clock: datetime, end: EndGrants) -> EvidenceError | None:
        """Makes the clock the mark. Returns the reason if grants cannot be ended.

        Grants end first, so that nothing is valid again if this process is killed in between.
        """
        try:
            end(mark, clock)
        except EvidenceError as error:
            return error
        back = int((mark - clock).total_seconds())
        raised, expired, shifted = _SET_BACK
        with self._begin(True) as rows:
            if rows(raised, _text(clock), _text(mark)):  # no other process was first
                rows(expired, int(mark.timestamp()))
                rows(shifted, back, back)
                logger.warning(
                    f"The clock was set back from {mark:%Y-%m-%d %H:%M} to {clock:%Y-%m-%d %H:%M} "
                    "UTC. Expired tokens stay expired, and the owner's sessions have ended."
                )
        return None

    @contextmanager
    def _begin(self, writes: bool) -> Iterator[Rows]:
        with self._tables.begin(_MARK, writes=writes) as begun:
            yield Rows(begun.run, begun.clock, _time(begun.mark), begun.ahead)


def _text(at: datetime) -> str:
    """A time in the form of the mark, which sorts as text."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _time(mark: str | None) -> datetime:
    return datetime.fromisoformat(mark) if mark else _NEVER
