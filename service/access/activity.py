"""What servers note of their use in the sidecar: the latest time, and which grants read what.

Counts are by day, grant, operation and stream, and are kept for 90 days. They hold no text, query,
record id or token. A killed worker loses those of its last seconds.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from evidence.errors import EvidenceError
from service.access.sidecar import Sidecar

logger = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 5
KEPT_DAYS: Final = 90
#: Counts that wait while the sidecar cannot be written; further ones are dropped.
WAITING_MOST: Final = 10_000
#: From here on a clock that is behind is reported.
BEHIND: Final = timedelta(minutes=1)
_PAUSE: Final = timedelta(seconds=FLUSH_SECONDS)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)

_SEEN = (
    "INSERT INTO access_clock (id, seen) VALUES (1, ?) ON CONFLICT (id) DO UPDATE"
    " SET seen = excluded.seen WHERE access_clock.seen < excluded.seen"
)
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
    """The requests of a grant in a day that used an operation on a stream, if on any."""

    day: str
    grant_id: str
    operation: str
    stream: str
    requests: int


class Activity:
    """The activity of one store. Made before workers fork; safe to share between threads."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._latest = self._read = _NEVER
        self._counts: Counter[tuple[str, str, str, str]] = Counter()
        self._lock = threading.Lock()
        self._started: threading.Event | None = None
        self._reported = ""

    def now(self) -> datetime:
        """The time, or the latest time ever seen if the clock has been set back."""
        clock = datetime.now(UTC)
        rare = self._started is None and abs(clock - self._read) >= _PAUSE
        if rare or self._read == _NEVER:
            self.flush()
        self._latest = max(self._latest, clock)
        return self._latest

    def count(self, grant_id: str, operation: str, uses: Iterable[tuple[str, str]]) -> None:
        """Counts one request. `uses` are the (grant id, stream) of the records it showed."""
        if self._started is None:
            return
        day = datetime.now(UTC).date().isoformat()
        with self._lock:
            if len(self._counts) < WAITING_MOST:
                for grant, stream in uses or ((grant_id, ""),):
                    self._counts[day, grant, operation, stream] += 1

    def uses(self, since: str = "") -> list[Use]:
        """All counts from a day on, by day. Raises `Unavailable` if the sidecar is off."""
        with self._sidecar.transaction() as rows:
            return [Use(*row) for row in rows(_USES, since)]

    def start(self) -> None:
        """Begins to count, and to write every few seconds. For a process that serves."""
        self._started = threading.Event()
        threading.Thread(target=self._run, args=(self._started,), daemon=True).start()

    def stop(self) -> None:
        """Writes what is left."""
        if self._started is not None:
            self._started.set()
            self.flush()

    def _run(self, stopped: threading.Event) -> None:
        self.flush()
        while not stopped.wait(FLUSH_SECONDS):
            self.flush()

    def flush(self) -> None:
        """Writes the counts and the time, and reads the latest time. Logs why if it cannot.

        Does nothing while there is no store.
        """
        if not self._sidecar.place.exists():
            return
        with self._lock:
            counts, self._counts = self._counts, Counter()
        clock = self._read = datetime.now(UTC)
        report, latest = "", max(self._latest, clock)
        try:
            with self._sidecar.transaction() as rows:
                rows(_SEEN, latest.isoformat(timespec="microseconds"))
                ((seen,),) = rows("SELECT seen FROM access_clock WHERE id = 1")
                for key, count in sorted(counts.items()):
                    rows(_ADD, *key, count)
                oldest = (clock - timedelta(days=KEPT_DAYS)).date().isoformat()
                rows("DELETE FROM access_use WHERE day < ?", oldest)
            self._latest = max(self._latest, datetime.fromisoformat(seen))
        except EvidenceError as error:
            with self._lock:
                self._counts.update(counts)
            report = f"Uses of grants and the latest time are not kept. {error.message}"
        if self._latest - clock > BEHIND:
            report = (
                f"The clock is behind {self._latest:%Y-%m-%d %H:%M} UTC, the latest time seen. "
                "Grants that expired until then stay expired. docs/operations.md has the remedy."
            )
        if report and report != self._reported:
            logger.warning(report)
        self._reported = report
