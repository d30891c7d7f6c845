"""Opens the store for writing: creates file and tables, rebuilds indexes of an older fold."""

import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from evidence.errors import InvalidRequest, Unavailable
from evidence.fold import FOLD_VERSION
from service import durable
from service.records.sqlite import files
from service.records.sqlite.changes import Changes
from service.records.sqlite.ddl import LAYOUTS, NEWEST, migrate
from service.records.sqlite.transactions import (
    CACHE_KIB,
    INDEXES,
    LOCK_SECONDS,
    explain_locks,
    tune,
)
from service.records.writing import SECRET_BYTES

__all__ = ["Writer", "explain_locks", "open_writer"]

WAL_PAGES = 16_384
OWNER_ONLY = 0o600


class Writer(Changes):
    """The file of a store, open for writing. See `writing.Writing`."""

    engine = "sqlite"

    def rebuild(self, on_record: Callable[[], None] = lambda: None) -> None:
        with files.alone(self.path):
            super().rebuild(on_record)


def open_writer(path: Path | str, *, lock_seconds: int | None = None) -> "Writer":
    """Opens the store at `path` for writing; creates the folder, the file and its tables if new."""
    path, seconds = Path(path), LOCK_SECONDS if lock_seconds is None else lock_seconds
    try:
        _reserve(path)
        before = files.file_at(path) if path.exists() else None
        db = sqlite3.connect(path, timeout=seconds, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise Unavailable(f"Cannot open the store {path}: {error}. Check the path.") from error
    writer = Writer(db, path, before or files.file_at(path), seconds)
    try:
        with explain_locks(path, seconds):
            _prepare(writer)
    except BaseException:
        db.close()
        raise
    return writer


def _reserve(path: Path) -> None:
    """Creates a new store and its folder, whose entries are on the disk when this returns.

    Only its owner can read it, because it contains records and the secret of the deployment. An
    existing file is not opened: closing it would release the locks of this process's readers, and
    another process would then treat itself as the last one and remove the log that they read.
    """
    made = [path, *(folder for folder in path.parents if not folder.exists())]
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # SQLite reports what is wrong with a path
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
        for new in made:
            durable.sync_entry(new)


def _prepare(writer: Writer) -> None:
    db, path = writer.db, writer.path
    files.forget_stale_index(db, path)
    # One statement: another process may be creating a store in it.
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
    (layout,) = db.execute("PRAGMA user_version").fetchone()
    if layout > NEWEST:
        raise InvalidRequest(f"{path} was written by a newer Rung. Install that version or later.")
    if layout and layout not in LAYOUTS:
        raise InvalidRequest(
            f"{path} was written before the first release. Import its records into a new --store."
        )
    migrate(db)
    if writer.meta("fold_version") == FOLD_VERSION and writer.meta("secret"):
        return
    with writer.transaction():
        if not writer.meta("secret"):
            writer.set_meta("secret", secrets.token_hex(SECRET_BYTES))
            for index in INDEXES:
                tune(db, index)
        if writer.meta("fold_version") not in (None, FOLD_VERSION):
            writer.rebuild()
        writer.set_meta("fold_version", FOLD_VERSION)
