"""Activity that servers store in the sidecar: the latest clock time, and each grant's requests.

Requests are counted by day, grant, operation and stream. Counts are kept for 90 days and contain no
text, query, record id or token. A killed worker loses the counts of its last seconds.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from evidence.errors import EvidenceError
from service.access.port import BUSY_SECONDS
from service.access.sidecar import BEHIND, Sidecar

logger = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 5
KEPT_DAYS: Final = 90
#: The most counts that wait while the sidecar cannot be written; more are dropped.
WAITING_MOST: Final = 10_000
#: Longer than a round of the thread that writes, also while the sidecar is busy: a request that
#: wrote instead would wait for it.
_PAUSE: Final = timedelta(seconds=2 * FLUSH_SECONDS + BUSY_SECONDS)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)

_ADD = (
    "INSERT INTO access_use (day, grant_id, operation, stream, count) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (day, grant_id, operation, stream)"
    " DO UPDATE SET count = access_use.count + excluded.count"
)
_USES = (
    "SELECT day, grant_id, operation, stream, count FROM access_use"
    " WHERE day >= ? ORDER BY day, grant_id, operation, stream"
)


class Use(NamedTuple):
    """The number of requests of a grant on one day, by operation and stream (empty for none)."""

    day: str
    grant_id: str
    operation: str
    stream: str
    requests: int


class Activity:
    """The activity of one store. Create it before workers fork. Safe to share between threads."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._latest = self._read = _NEVER
        self._ahead = timedelta()
        self._counts: Counter[tuple[str, str, str, str]] = Counter()
        self._lock = threading.Lock()
        self._stopped: threading.Event | None = None
        self._reported = ""

    def now(self) -> datetime:
        """The time that decides the expiry of grants: see `sidecar`.

        Take it before the snapshot in which a grant is read: after the clock was set back, grants
        end before this time becomes earlier.
        """
        clock = datetime.now(UTC)
        if abs(clock - self._read) >= _PAUSE:
            self.flush() if self._stopped else self._look()
        self._latest = max(self._latest, clock + self._ahead)
        return self._latest

    def _look(self) -> None:
        """Reads the latest time, if there is one, and writes nothing."""
        self._read = datetime.now(UTC)
        if self._sidecar.exists():
            with suppress(EvidenceError), self._sidecar.transaction(writes=False) as rows:
                self._latest, self._ahead = rows.now, rows.ahead

    def count(self, grant_id: str, operation: str, uses: Iterable[tuple[str, str]]) -> None:
        """Counts one request. `uses` are the (grant id, stream) of the records it showed."""
        if self._stopped is None:
            return
        day = datetime.now(UTC).date().isoformat()
        with self._lock:
            if len(self._counts) < WAITING_MOST:
                for grant, stream in uses or ((grant_id, ""),):
                    self._counts[day, grant, operation, stream] += 1

    def uses(self, since: str = "") -> list[Use]:
        """All counts from a day on, by day. Raises `Unavailable` if the sidecar is off."""
        with self._sidecar.transaction(writes=False) as rows:
            return [Use(*row) for row in rows(_USES, since)]

    def start(self) -> None:
        """Starts counting, and writes every few seconds, in a process that serves."""
        self._stopped = threading.Event()
        threading.Thread(target=self._run, args=(self._stopped,), daemon=True).start()

    def stop(self) -> None:
        """Stops counting and writes the remaining counts."""
        if self._stopped is not None:
            self._stopped.set()
            self.flush()

    def _run(self, stopped: threading.Event) -> None:
        self.flush()
        while not stopped.wait(FLUSH_SECONDS):
            self.flush()

    def flush(self) -> None:
        """Writes the counts and the time, and reads the latest time. Logs the reason if that fails.

        Does nothing while there is no store.
        """
        if not self._sidecar.store_exists():
            return
        with self._lock:
            counts, self._counts = self._counts, Counter()
        clock, report = datetime.now(UTC), ""
        self._read = clock
        try:
            with self._sidecar.transaction() as rows:
                for key, count in sorted(counts.items()):
                    rows(_ADD, *key, count)
                oldest = (clock - timedelta(days=KEPT_DAYS)).date().isoformat()
                rows("DELETE FROM access_use WHERE day < ?", oldest)
            self._latest, self._ahead = rows.now, rows.ahead
        except EvidenceError as error:
            with self._lock:
                self._counts.update(counts)
            report = f"The request counts and the latest time could not be stored. {error.message}"
        if self._latest - clock - self._ahead > BEHIND:
            report = (
                f"The clock is behind the latest recorded time, {self._latest:%Y-%m-%d %H:%M} UTC. "
                "Grants that expired before that time could not be ended. See docs/operations.md."
            )
        if report and report != self._reported:
            logger.warning(report)
        self._reported = report
