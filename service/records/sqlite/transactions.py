"""The store, open for writing: its transactions, its counters and the merging of its indexes.

One process writes at a time, readers go on reading. Connections and streams are made in
catalog.py, rows come in through changes.py.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from evidence.errors import InvalidRequest, Unavailable
from evidence.work import Deadline
from service.records.sqlite import files
from service.records.attachments import Attachment

LOCK_SECONDS = 30
CACHE_KIB = 65_536
#: From here on a commit waits for readers, no longer than so, for SQLite's log to begin anew.
LOG_BYTES, LOG_SECONDS = 134_217_728, 1
COUNTERS = ("next_seq", "next_chunk", "next_passage", "next_version")
INDEXES = ("fts", "fts_passage")
HASH_BYTES = 67_108_864
#: How many pieces of the index a merge waits for: half the work of the default, 4, in long imports.
AUTOMERGE = 8
UNMERGED, REMOVED = "unmerged", "removed"
UNMERGED_SHARE = 10
#: A step of a merge takes as many pages as fit into half the time that others may wait.
MERGE_PAGES, LEAST_PAGES, MERGE_SECONDS = 4_096, 64, 0.5
#: A merge goes through the indexes once; what it would keep of them, their new words need.
MERGE_CACHE_KIB = 16_384


@contextmanager
def explain_locks(path: Path | str, seconds: int = LOCK_SECONDS) -> Iterator[None]:
    """Turns SQLite's complaints about a busy or foreign file into errors that say what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        raise Unavailable(
            f"Another process has been writing to {path} for {seconds} seconds. Wait "
            "until it has finished, or stop it, then try again.",
            code="store_unavailable",
        ) from error
    except sqlite3.DatabaseError as error:
        if "not a database" not in str(error):
            raise
        raise InvalidRequest(f"{path} is not a Rung store; choose another --store.") from error


class Transactions:
    """The store, open for writing. Use as a context manager, or call `close`."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, file: tuple[int, int], lock_seconds: int
    ) -> None:
        self.db = db
        self.lock_seconds = lock_seconds
        self.path = path
        self._file = file
        #: {(connection id, stream): the hidden stream that rows for it go into}; see staging.py.
        self.staged: dict[tuple[str, str], str] = {}
        #: The next version of a change that nobody sees before what is staged is published.
        self.staged_version = 0
        #: Blobs whose bytes differ from those that a name has now: (connection, record, blob).
        self.staged_blobs: list[tuple[int, int, Attachment]] = []
        self._next: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store. Its log is empty then, unless somebody reads an older state or writes.

        A file that is copied or renamed over the store inherits the log.
        """
        with suppress(sqlite3.Error):
            self.db.execute("PRAGMA busy_timeout = 0")
            self.db.execute("BEGIN IMMEDIATE")  # or another process writes, and will empty the log
            self.db.execute("ROLLBACK")
            self._checkpoint()
        self.db.close()

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        return self.db.execute(sql, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Inside another transaction it joins that one."""
        if self.db.in_transaction:
            yield
            return
        seconds = self.lock_seconds
        with explain_locks(self.path, seconds), files.in_turn(self.path, seconds) as deadline:
            self.db.execute(f"PRAGMA busy_timeout = {int(deadline.left() * 1_000)}")
            self.db.execute("BEGIN IMMEDIATE")
        try:
            if files.look(self.path).file != self._file:
                raise Unavailable(f"{self.path} was replaced meanwhile. Run the command again.")
            with self.counting():
                yield
            self.db.execute("COMMIT")
            self._bound_log()
        except BaseException:
            if self.db.in_transaction:  # or somebody pressed Ctrl-C right after it was written
                self.db.execute("ROLLBACK")
            raise

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Reads the counters for `take`, and writes them back."""
        self._next = {key: int(_meta(self.db, key) or 1) for key in COUNTERS}
        if self.staged:
            self._next["next_version"] = self.staged_version
        yield
        if self.staged:
            self.staged_version = self._next.pop("next_version")
        for key, value in self._next.items():
            _set_meta(self.db, key, value)

    def _bound_log(self) -> None:
        """Keeps the log from growing with every commit, as it does while somebody always reads."""
        with suppress(FileNotFoundError):
            if self.path.with_name(f"{self.path.name}-wal").stat().st_size > LOG_BYTES:
                self._checkpoint()

    def _checkpoint(self) -> None:
        """Moves the log into the file, as far as readers allow within `LOG_SECONDS`."""
        self.db.execute(f"PRAGMA busy_timeout = {LOG_SECONDS * 1_000}")
        self.db.execute("PRAGMA wal_checkpoint(PASSIVE)")  # the other one keeps writers waiting
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.execute(f"PRAGMA busy_timeout = {self.lock_seconds * 1_000}")

    def take(self, counter: str, count: int = 1) -> int:
        """The first of `count` fresh numbers; numbers of a committed transaction never recur."""
        first = self._next[counter]
        self._next[counter] = first + count
        return first

    def meta(self, key: str) -> Any:
        """What the store notes about itself under a key; None if there is nothing."""
        return _meta(self.db, key)

    def set_meta(self, key: str, value: str | int) -> None:
        _set_meta(self.db, key, value)

    def note(self, rows: int, *, removed: bool) -> None:
        """Notes that records went into the full-text indexes, and whether words left them.

        In the transaction of the records: whoever writes next merges what a killed import left.
        """
        self.set_meta(UNMERGED, int(self.meta(UNMERGED) or 0) + rows)
        if removed:
            self.set_meta(REMOVED, 1)

    def finish(self) -> None:
        """Merges the full-text indexes where it is time; words of deleted records are gone then.

        Where none were deleted, the first tenth of new records waits for more: the indexes keep
        themselves in good order, and a whole merge takes longer the more they hold.
        """
        waiting = int(self.meta(UNMERGED) or 0)
        if not waiting:
            return
        self.db.execute(f"PRAGMA cache_size = -{MERGE_CACHE_KIB}")
        if self.meta(REMOVED) or waiting * UNMERGED_SHARE >= int(self.meta("next_seq")):
            for index in INDEXES:
                self._merge(index)
            with self.transaction():
                if self.meta(UNMERGED) == waiting:  # or somebody has written meanwhile
                    self.db.execute("DELETE FROM meta WHERE key IN (?, ?)", (UNMERGED, REMOVED))
        self._checkpoint()
        self.db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")

    def _merge(self, index: str) -> None:
        """Merges all of an index, in steps that others can write between."""
        merge = f"INSERT INTO {index}({index}, rank) VALUES ('merge', ?)"
        pages, sign, done = LEAST_PAGES, -1, False
        while not done:
            with self.transaction():
                deadline, before = Deadline.after(MERGE_SECONDS), self.db.total_changes
                self.db.execute(merge, (sign * pages,))
                done = self.db.total_changes - before < 2  # the documented sign
            many = pages // 2 if deadline.expired() else pages * 2
            pages, sign = min(max(many, LEAST_PAGES), MERGE_PAGES), 1


def tune(db: sqlite3.Connection, index: str) -> None:
    """Sets the options of a new full-text table."""
    db.execute(f"INSERT INTO {index}({index}, rank) VALUES('hashsize', ?)", (HASH_BYTES,))
    if index == "fts":
        db.execute("INSERT INTO fts(fts, rank) VALUES('automerge', ?)", (AUTOMERGE,))


def _meta(db: sqlite3.Connection, key: str) -> Any:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def _set_meta(db: sqlite3.Connection, key: str, value: str | int) -> None:
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))
