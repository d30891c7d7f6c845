"""The store, open for writing: its file, its transactions and its counters.

One process writes at a time, readers go on reading. Connections and streams are made in
streams.py, rows come in through ingest.py.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from evidence.errors import InvalidRequest, Unavailable
from evidence.fold import FOLD_VERSION, fold
from service.records.sqlite import files, recent_index
from service.records.sqlite.ddl import MIGRATIONS, migrate
from service.records.sqlite.rebuild import rebuild, tune

LOCK_SECONDS = 30
CACHE_KIB = 65_536
WAL_PAGES = 16_384
#: From here on a commit waits for readers, no longer than so, for SQLite's log to begin anew.
LOG_BYTES, LOG_SECONDS = 134_217_728, 1
SECRET_BYTES = 32
OWNER_ONLY = 0o600
COUNTERS = ("next_seq", "next_chunk")
INDEXES = ("fts", "fts_chunk", "fts_recent")
UNMERGED, REMOVED = "unmerged", "removed"
UNMERGED_SHARE = 10
MERGE_PAGES = 4_096
#: A merge goes through the indexes once; what it would keep of them, their new words need.
MERGE_CACHE_KIB = 16_384


def open_writer(path: Path | str) -> "Writer":
    """Opens the store at `path` for writing; makes the folder, the file and its tables if new."""
    try:
        _reserve(Path(path))
        db = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise Unavailable(f"Cannot open the store {path}: {error}. Check the path.") from error
    try:
        with explain_locks(path):
            _prepare(db, path)
    except BaseException:
        db.close()
        raise
    return Writer(db, Path(path))


@contextmanager
def explain_locks(path: Path | str) -> Iterator[None]:
    """Turns SQLite's complaints about a busy or foreign file into errors that say what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        raise Unavailable(
            f"Another process has been writing to {path} for {LOCK_SECONDS} seconds. "
            "Wait until that import is done, or stop it; then run this again."
        ) from error
    except sqlite3.DatabaseError as error:
        if "not a database" not in str(error):
            raise
        raise InvalidRequest(f"{path} is not a Rung store; choose another --store.") from error


class Writer:
    """The store, open for writing. Use as a context manager, or call `close`."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self.db = db
        self.path = path
        self._next: dict[str, int] = {}

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store. Its log is empty then, unless somebody is reading an older state.

        A file that is copied or renamed over the store inherits the log.
        """
        with suppress(sqlite3.Error):
            self._checkpoint()
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Inside another transaction it joins that one."""
        if self.db.in_transaction:
            yield
            return
        with explain_locks(self.path):
            self.db.execute("BEGIN IMMEDIATE")
        try:
            self._next = {key: int(_meta(self.db, key) or 1) for key in COUNTERS}
            yield
            for key, value in self._next.items():
                _set_meta(self.db, key, value)
            self.db.execute("COMMIT")
            self._bound_log()
        except BaseException:
            if self.db.in_transaction:  # or somebody pressed Ctrl-C right after it was written
                self.db.execute("ROLLBACK")
            raise

    def _bound_log(self) -> None:
        """Keeps the log from growing with every commit, as it does while somebody always reads."""
        with suppress(FileNotFoundError):
            if self.path.with_name(f"{self.path.name}-wal").stat().st_size > LOG_BYTES:
                self._checkpoint()

    def _checkpoint(self) -> None:
        """Moves the log into the file, as far as readers allow within `LOG_SECONDS`."""
        self.db.execute(f"PRAGMA busy_timeout = {LOG_SECONDS * 1_000}")
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1_000}")

    def take(self, counter: str, count: int = 1) -> int:
        """The first of `count` fresh numbers; numbers of a committed transaction never recur."""
        first = self._next[counter]
        self._next[counter] = first + count
        return first

    def meta(self, key: str) -> Any:
        """What the store notes about itself under a key; None where there is nothing."""
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
        with self.transaction():
            recent_index.refresh(self.db)
        if self.meta(REMOVED) or waiting * UNMERGED_SHARE >= int(self.meta("next_seq")):
            for index in INDEXES:
                self._merge(index)
            with self.transaction():
                if self.meta(UNMERGED) == waiting:  # or somebody has written meanwhile
                    self.db.execute("DELETE FROM meta WHERE key IN (?, ?)", (UNMERGED, REMOVED))
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")

    def reindex(self) -> None:
        """Builds the full-text indexes anew from the stored texts."""
        for index in INDEXES:
            with self.transaction():
                rebuild(self.db, index)
        self.finish()

    def _merge(self, index: str) -> None:
        """Merges all of an index, in steps that others can write between."""
        pages, done = -MERGE_PAGES, False
        while not done:
            with self.transaction():
                before = self.db.total_changes
                self.db.execute(f"INSERT INTO {index}({index}, rank) VALUES ('merge', ?)", (pages,))
                done = self.db.total_changes - before < 2  # the documented sign
            pages = MERGE_PAGES


def _reserve(path: Path) -> None:
    """Makes a new store, and its folder. It is for its owner's eyes: it holds records, and the
    secret of the deployment. The entries of both are on the disk when this returns.

    One that is there is not touched: closing it would end the locks of this process's readers, and
    another process would take itself for the last one and remove the log they read.
    """
    made = [path, *files.missing_folders(path)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # SQLite says what is wrong with a path
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
        for new in made:
            files.make_durable(new)


def _prepare(db: sqlite3.Connection, path: Path | str) -> None:
    files.forget_stale_index(db, Path(path))
    # One statement: another process may be making a new store of it.
    (foreign,) = db.execute(
        "SELECT user_version = 0 AND EXISTS (SELECT 1 FROM sqlite_master) FROM pragma_user_version"
    ).fetchone()
    if foreign:
        raise InvalidRequest(f"{path} is not a Rung store; choose another --store.")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")  # every commit is on the disk when it returns
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    db.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    db.create_function("fold_text", 1, fold, deterministic=True)
    db.create_function("fold_field", 2, _fold_field, deterministic=True)
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise InvalidRequest(f"{path} was written by a newer Rung. Install that version or later.")
    migrate(db)
    if 0 < version < recent_index.SINCE_LAYOUT:
        db.execute("BEGIN IMMEDIATE")
        recent_index.refresh(db)
        db.execute("COMMIT")
    if _meta(db, "fold_version") == FOLD_VERSION and _meta(db, "secret"):
        return
    db.execute("BEGIN IMMEDIATE")
    if not _meta(db, "secret"):
        _set_meta(db, "secret", secrets.token_hex(SECRET_BYTES))
        tune(db, "fts")
        tune(db, "fts_chunk")
    if _meta(db, "fold_version") not in (None, FOLD_VERSION):
        # Deletes need the very tokens that went in, so a new fold means new indexes.
        for index in INDEXES:
            rebuild(db, index)
    _set_meta(db, "fold_version", FOLD_VERSION)
    db.execute("COMMIT")


def _meta(db: sqlite3.Connection, key: str) -> Any:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def _set_meta(db: sqlite3.Connection, key: str, value: str | int) -> None:
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def _fold_field(data: str, field: str) -> str:
    value = orjson.loads(data).get(field)
    return fold(value) if isinstance(value, str) else ""
