"""The store, open for writing: its transactions, its counters, and the merging of its indexes.

One process writes at a time; readers continue. Connections and streams are created in catalog.py,
rows are written in writer.py.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evidence.errors import InvalidRequest, Unavailable
from evidence.work import Deadline
from service import database_files
from service.database_files import LOCK_SECONDS, LOG_SECONDS
from service.records.sqlite.recent_words import RecentWords
from service.records.engine.change_log import new_epoch
from service.records.writing.steps import BaseWriter

CACHE_KIB = 65_536
#: Above this size of the log, a commit waits up to `LOG_SECONDS` for readers, so that the log can
#: restart.
LOG_BYTES = 134_217_728
COUNTERS = ("next_seq", "next_chunk", "next_passage", "next_version")
INDEXES = ("fts", "fts_passage")
HASH_BYTES = 67_108_864
#: The number of index segments that trigger a merge: half the work of the default, 4, in long
#: imports.
AUTOMERGE = 8
UNMERGED, REMOVED = "unmerged", "removed"
UNMERGED_SHARE = 10
#: A step of a merge takes as many pages as half the wait time of others allows.
MERGE_PAGES, LEAST_PAGES, MERGE_SECONDS = 4_096, 64, 0.5
#: A merge reads the indexes only once, so caching them would displace pages that new words need.
MERGE_CACHE_KIB = 16_384


@contextmanager
def explained(path: Path, seconds: int = LOCK_SECONDS) -> Iterator[None]:
    """Turns errors of SQLite into errors that explain what to do."""
    try:
        yield
    except sqlite3.Error as error:
        text, failed = str(error), isinstance(error, sqlite3.DatabaseError)
        if "locked" in text and isinstance(error, sqlite3.OperationalError):
            raise Unavailable(
                f"Another process has been writing to {path} for {seconds} seconds. Wait "
                "until it has finished, or stop it, and then try again.",
                code="store_unavailable",
            ) from error
        if failed and "not a database" in text:
            raise InvalidRequest(
                f"{path} is not a Rung store. Choose a different store (--store FILE)."
            ) from error
        advice = (
            "Check the free space, the permissions of the store's directory, and whether the disk "
            "is read-only."
        )
        if failed and "malformed" in text:
            advice = "If only an index is damaged, rebuild it with `rung check --repair`."
        raise Unavailable(f"The store cannot be used: {text}.", hint=advice) from error


class Transactions(BaseWriter):
    """The store, open for writing."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, file: tuple[int, int], lock_seconds: int
    ) -> None:
        super().__init__()
        self.db = db
        self.lock_seconds = lock_seconds
        self.path = path
        self._file = file
        #: The next version for staged changes, which nobody sees before they are published.
        self.staged_version = 0
        self._next: dict[str, int] = {}
        self.recent_words = RecentWords()
        db.create_function("add_crowded", 1, self.recent_words.add_crowded)

    def close(self) -> None:
        """Closes the store.

        Its log is then empty, unless somebody reads an older state or writes. A file that is copied
        or renamed over the store inherits the log.
        """
        with suppress(sqlite3.Error):
            self.db.execute("PRAGMA busy_timeout = 0")
            self.db.execute("BEGIN IMMEDIATE")  # or another process writes, and will empty the log
            self.db.execute("ROLLBACK")
            self._checkpoint()
        self.db.close()

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.db.execute(sql, values).fetchall()

    def run_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self.db.executemany(sql, rows)

    def __exit__(self, *exception: object) -> None:
        self.close()
        error = exception[1]
        if isinstance(error, sqlite3.Error):
            with explained(self.path, self.lock_seconds):
                raise error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self.db.in_transaction:
            yield
            return
        with self.quiet_transaction(), self._counting():
            yield

    @contextmanager
    def quiet_transaction(self) -> Iterator[None]:
        """A transaction that changes no record, so answers that are cached remain."""
        with explained(self.path, self.lock_seconds), self._transaction():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with database_files.in_turn(self.path, self.lock_seconds) as deadline:
            self.db.execute(f"PRAGMA busy_timeout = {int(deadline.left() * 1_000)}")
            self.db.execute("BEGIN IMMEDIATE")
        try:
            if not self._is_at_path():
                raise Unavailable(
                    f"{self.path} was replaced while the command was running. Run the command "
                    "again."
                )
            self.recent_words.use(*self.run("PRAGMA data_version")[0])
            yield
            self.db.execute("COMMIT")
            self._bound_log()
        except BaseException:
            self.recent_words.clear()
            if self.db.in_transaction:  # or somebody pressed Ctrl-C right after the write
                self.db.execute("ROLLBACK")
            raise

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Reads the counters for `take`, and writes them back. Logs a commit of changes."""
        self._next = {key: int(self.meta(key) or 1) for key in COUNTERS}
        if self.staged:
            self._next["next_version"] = self.staged_version
        first = self._next["next_version"]
        yield
        if (last := self._next["next_version"] - 1) >= first:
            self.run("INSERT OR IGNORE INTO commit_log VALUES (?, ?)", last, new_epoch())
        if self.staged:
            self.staged_version = self._next.pop("next_version")
        for key, value in self._next.items():
            self.set_meta(key, value)

    def _bound_log(self) -> None:
        """Keeps the log from growing with every commit, as it would if there is always a reader."""
        with suppress(FileNotFoundError):
            if self.path.with_name(f"{self.path.name}-wal").stat().st_size > LOG_BYTES:
                self._checkpoint()

    def _checkpoint(self) -> None:
        """Moves the log into the file, as far as readers allow within `LOG_SECONDS`.

        Not if the file was replaced, because the log at the path then belongs to the new one.
        Nobody replaces a file whose log is not empty, or during another writer's turn.
        """
        if not self._is_at_path():
            return
        self.db.execute(f"PRAGMA busy_timeout = {LOG_SECONDS * 1_000}")
        self.db.execute("PRAGMA wal_checkpoint(PASSIVE)")  # the other one keeps writers waiting
        with database_files.in_turn(self.path, LOG_SECONDS) as deadline:
            if not deadline.expired() and self._is_at_path():
                self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.execute(f"PRAGMA busy_timeout = {self.lock_seconds * 1_000}")

    def _is_at_path(self) -> bool:
        with suppress(OSError):
            return database_files.file_at(self.path) == self._file
        return False

    def take(self, counter: str, count: int = 1) -> int:
        """The first of `count` new numbers; numbers of a committed transaction are never reused."""
        first = self._next[counter]
        self._next[counter] = first + count
        return first

    def set_meta(self, key: str, value: str | int) -> None:
        self.run("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", key, value)

    def note(self, records: int) -> None:
        """Notes that the indexes of this many records change.

        This is in the transaction of the records, so that the next writer merges what a killed
        import left.
        """
        self.set_meta(UNMERGED, int(self.meta(UNMERGED) or 0) + records)

    def note_removed(self) -> None:
        """Notes that words are removed from the full-text indexes."""
        self.set_meta(REMOVED, 1)

    def finish(self) -> None:
        """Merges the full-text indexes if it is time; words of deleted records are then gone.

        If none were deleted, it waits until a tenth of the records is new, because the indexes
        maintain themselves, and a whole merge takes longer the larger they are.
        """
        with explained(self.path, self.lock_seconds):
            self._merge_if_due()

    def _merge_if_due(self) -> None:
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
        """Merges a whole index, in steps between which others can write."""
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
