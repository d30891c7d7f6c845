"""The tables of the sidecar, in the store's database."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from evidence.work import Deadline
from service.access.port import BUSY_SECONDS, Begun
from service.records.postgres.connections import Pool, Rows, explained

#: Waiting for a lock ends before the statement times out, so that the client is asked to try again.
_LIMITS: Final = (
    f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'",
    f"SET LOCAL statement_timeout = '{2 * BUSY_SECONDS}s'",
)


class AccessPool:
    """See `port.AccessTables`."""

    def __init__(self, url: str) -> None:
        self._pool = Pool(url)
        self.close = self._pool.close

    def exists(self) -> bool:
        return True

    def store_exists(self) -> bool:
        return True

    @contextmanager
    def begin(self, mark: str, *, writes: bool) -> Iterator[Begun]:
        begin = "BEGIN" if writes else "BEGIN READ ONLY"
        opening = [(sql, ()) for sql in (begin, *_LIMITS, f"SELECT {mark}, clock_timestamp()")]
        with explained(), self._pool.loan(Deadline.after(BUSY_SECONDS)) as loan:
            ((seen, clock),) = loan.run(*opening)[-1]

            def run(sql: str, *values: object) -> Rows:
                return loan.run((sql, values))[0]

            yield Begun(run, clock, seen, clock - datetime.now(UTC))
            loan.db.commit()
