"""The database, open for writing: its transactions, its numbers and its log of changes.

Several processes may write at once: who changes records of a connection holds its row until the
commit. What all writers share, the counters, is changed last, so that nobody waits for long.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from service.records.postgres.connections import Connection, explained
from service.records.postgres.ddl import BLOCK, KEEP

_COUNT = """
UPDATE counter SET generation = generation + 1, catalog = catalog + %s, version = version + %s
RETURNING version
"""

#: An entry of the log without its version: stream, seq, connection, fields.
Entry = tuple[int, int, int, str | None]


class Transactions:
    """The store, open for writing. Use as a context manager, or call `close`."""

    def __init__(self, db: Connection, lock_seconds: int | None = None) -> None:
        self.db, self.lock_seconds = db, lock_seconds
        #: Streams that are replaced or removed in this transaction, each with its own name.
        self.staged: dict[tuple[str, str], str] = {}
        self._log: list[Entry] = []
        self._wrote = self._catalog = False
        self._fresh: dict[str, list[int]] = {}
        #: Records written since the last `finish`.
        self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Inside another transaction it joins that one."""
        if self.db.info.transaction_status:
            yield
            return
        self._log, self._wrote, self._catalog = [], False, False
        with explained(), self.db.transaction():
            if self.lock_seconds is not None:
                self.db.execute(f"SET LOCAL lock_timeout = '{self.lock_seconds}s'")
            yield
            if self._wrote:
                self._count()

    def _count(self) -> None:
        """Gives the changes their versions, in the order of all commits."""
        log = self._log
        ((last,),) = self.rows_of(_COUNT, int(self._catalog), len(log))
        first = last - len(log) + 1
        entries = ((stream, n, *rest) for n, (stream, *rest) in enumerate(log, start=first))
        self.copy("change (stream, version, seq, conn, fields)", entries)

    def rows_of(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""
        with explained():
            return self.db.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of a statement, if any."""
        found = self.rows_of(sql, *values)
        return found[0] if found else None

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement that other engines run too; `?` marks its parameters."""
        rows_of = self.rows_of if sql.startswith("SELECT") else self.changed
        return rows_of(sql.replace("?", "%s"), *values)

    def write(self, sql: str, *values: Any) -> None:
        """Changes something."""
        self._wrote = True
        with explained():
            self.db.execute(sql, values)

    def changed(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Changes something, and gives the rows that it returns."""
        self._wrote = True
        return self.rows_of(sql, *values)

    def write_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Changes something for each row."""
        if rows:
            self._wrote = True
            with explained():
                self.db.cursor().executemany(sql, rows)

    def copy(self, into: str, rows: Iterable[Sequence[Any]]) -> None:
        """Adds rows to a table; `into` names it and its columns."""
        self._wrote = True
        with explained(), self.db.cursor().copy(f"COPY {into} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def log(self, entry: Entry) -> None:
        """Notes a change for the log."""
        self._log.append(entry)

    def changed_catalog(self) -> None:
        """Notes that a connection or a stream changes."""
        self._wrote = self._catalog = True

    def fresh(self, sequence: str) -> int:
        """A number that nobody had."""
        free = self._fresh.setdefault(sequence, [])
        if not free:
            ((first,),) = self.rows_of("SELECT nextval(%s::regclass)", sequence)
            free += range(first + BLOCK - 1, first - 1, -1)
        return free.pop()

    def meta(self, key: str) -> Any:
        """What the store notes about itself under a key; None if there is nothing."""
        row = self.row("SELECT value FROM meta WHERE key = %s", key)
        return None if row is None else row[0]

    def set_meta(self, key: str, value: str | int) -> None:
        self.write(KEEP, key, str(value))
