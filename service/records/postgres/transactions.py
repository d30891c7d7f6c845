"""The database, open for writing: its transactions, counters and change log.

Several processes may write at once: a writer that changes records of a connection locks its row
until the commit. The counters, which all writers share, are changed last, so that nobody waits for
long.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from service.records.writing.arrivals import Entry
from service.records.postgres.connections import Connection, explained
from service.records.postgres.ddl import BLOCK, HELD, KEEP, OPEN
from service.records.engine.change_log import new_epoch
from service.records.writing.steps import BaseWriter

_COUNT = """
WITH counted AS (
  UPDATE counter SET generation = generation + 1, version = version + %(changes)s,
    epoch = %(epoch)s, catalog = CASE WHEN %(catalog)s THEN %(epoch)s ELSE catalog END
  RETURNING version, generation, epoch
)
INSERT INTO commit_log SELECT * FROM counted RETURNING version
"""

_INCOMING = "CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA"
_ENTER = "INSERT INTO {0} OVERRIDING SYSTEM VALUE SELECT * FROM {1}; TRUNCATE {1}"


class Transactions(BaseWriter):
    """The store, open for writing. Streams are staged in one transaction, under their own names."""

    def __init__(self, db: Connection, lock_seconds: int | None = None) -> None:
        super().__init__()
        self.db, self.lock_seconds = db, lock_seconds
        self._log: list[Entry] = []
        self._wrote = self._catalog_changed = False
        self._fresh: dict[str, list[int]] = {}
        #: The temporary table of this transaction for each table that rows were copied to.
        self._incoming: dict[str, str] = {}
        #: Records written since the last `finish`.
        self._written = 0

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self.db.info.transaction_status:
            yield
            return
        self._log, self._wrote, self._catalog_changed = [], False, False
        with self.quiet_transaction():
            yield
            if self._wrote:
                self._count()

    @contextmanager
    def quiet_transaction(self) -> Iterator[None]:
        """A transaction that changes no record, or the one that is open."""
        with explained():
            if self.db.info.transaction_status:
                yield
                return
            with self.db.transaction():
                self._incoming = {}
                self.db.execute(OPEN)
                if self.lock_seconds is not None:
                    self.db.execute(f"SET LOCAL lock_timeout = '{self.lock_seconds}s'")
                yield

    def _count(self) -> None:
        """Assigns versions to the changes, in the order of all commits."""
        log = self._log
        values = {"changes": len(log), "epoch": new_epoch(), "catalog": self._catalog_changed}
        ((last,),) = self.db.execute(_COUNT, values)
        first = last - len(log) + 1
        entries = ((stream, n, *rest) for n, (stream, *rest) in enumerate(log, start=first))
        self.copy("change (stream, version, seq, conn, fields, was_at, left_at)", entries)

    def rows_of(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement, if any."""
        with self.quiet_transaction():
            cursor = self.db.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        rows_of = self.rows_of if sql.startswith("SELECT") else self.write
        return rows_of(sql, *values)

    def write(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Runs a statement that writes, and returns its rows."""
        self._wrote = True
        return self.rows_of(sql, *values)

    def run_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self._wrote = True
            with self.quiet_transaction():
                self.db.cursor().executemany(sql, rows)

    def copy(self, into: str, rows: Iterable[Sequence[Any]]) -> None:
        """Adds rows to a table; `into` names it and its columns.

        PostgreSQL cannot COPY into a table with row security, so such tables are filled from
        another. One serves the whole transaction, which would keep the locks of each dropped one.
        """
        self._wrote = True
        table, _, columns = into.partition(" ")
        with self.quiet_transaction():
            target = self._incoming.get(into, into)
            if table in HELD and target == into:
                target = self._incoming[into] = f"incoming_{len(self._incoming)}"
                column_list = columns.strip("()") or "*"
                self.db.execute(_INCOMING.format(target, column_list, table).encode())
            with self.db.cursor().copy(f"COPY {target} FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
            if target != into:
                self.db.execute(_ENTER.format(into, target).encode())

    def log(self, entries: Sequence[Entry]) -> None:
        self._log += entries

    def note(self, records: int) -> None:
        self._written += records

    def changed_catalog(self) -> None:
        self._wrote = self._catalog_changed = True

    def fresh(self, sequence: str) -> int:
        """A number that was never used."""
        free = self._fresh.setdefault(sequence, [])
        if not free:
            ((first,),) = self.rows_of("SELECT nextval(%s::regclass)", sequence)
            free += range(first + BLOCK - 1, first - 1, -1)
        return free.pop()

    def set_meta(self, key: str, value: str | int) -> None:
        self.write(KEEP, key, str(value))
