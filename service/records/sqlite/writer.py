"""Opens a store file for writing, and writes the changes of a batch of rows at once.

A change removes the replaced data from the indexes, then stores and indexes the new data. Batches
are large, because the full-text index adds the words of many records at once much faster than those
of few. So a batch keeps only the JSON of each row, and processes the rows in small pieces.

Opening creates file and tables, and rebuilds indexes of an older fold.
"""

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import orjson

from evidence.errors import InvalidRequest, Unavailable
from evidence.fold import FOLD_VERSION
from service import database_files, durable
from service.database_files import LOCK_SECONDS
from service.records.writing.arrivals import Arrival, Entry, Stored, by_stream
from service.records.writing.derived import order_of
from service.records.engine.content import Content
from service.records.engine.large import Place
from evidence.manifest import StreamManifest
from service.records.engine.scopes import StreamHandle
from service.records.sqlite import indexing
from service.records.sqlite.catalog import Catalog
from service.records.sqlite.copying import SqliteContent
from service.records.sqlite.ddl import LAYOUTS, NEWEST, add_tables, migrate
from service.records.sqlite.exact import add_functions
from service.records.sqlite.staging import Stage, staging
from service.records.sqlite.transactions import CACHE_KIB, INDEXES
from service.records.sqlite.transactions import explained, tune
from service.records.sqlite.vectors import SqliteVectors
from service.records.writing.steps import Rows
from service.records.writing import SECRET_BYTES

WAL_PAGES = 16_384
OWNER_ONLY = 0o600

_FIND = """
SELECT r.record_key, r.seq, r.deleted, CAST(d.data AS BLOB), d.big, d.emitted_at, d.changed, r.at
FROM record r LEFT JOIN document d ON d.seq = r.seq
WHERE r.stream = ? AND r.record_key IN (SELECT value FROM json_each(?))
"""
#: The second parameter of a statement with numbered parameters is the connection, which rows do not
#: have.
_ADD_RECORD = """
INSERT INTO record (seq, stream, record_key, at, cursor, thread, place)
VALUES (?1, ?3, ?4, ?5, ?6, ?7, ?8)
"""
_CHANGE_RECORD = """
UPDATE record SET at = ?, cursor = ?, thread = ?, place = ?, deleted = 0 WHERE seq = ?
"""
_ADD_DOCUMENT = """
INSERT OR REPLACE INTO document (seq, emitted_at, changed, data, big) VALUES (?1, ?3, ?4, ?5, ?6)
"""


class Writer(Catalog):
    """The file of a store, open for writing. See `writing.Writing`."""

    def content(self) -> Content:
        return SqliteContent(self.db, self.take)

    def vectors(self) -> SqliteVectors:
        return SqliteVectors(self)

    def staging(self, targets: Sequence[tuple[str, str]]) -> AbstractContextManager[Stage]:
        return staging(self, targets)

    def rebuild(self, on_record: Callable[[], None] = lambda: None) -> None:
        with database_files.alone(self.path):
            super().rebuild(on_record)

    def new_seq(self) -> int:
        return self.take("next_seq")

    def find(self, arrivals: Sequence[Arrival]) -> dict[tuple[int, str], Stored]:
        records = {}
        for stream, keys in by_stream(arrivals).items():
            if self.row("SELECT 1 FROM record WHERE stream = ? LIMIT 1", stream):
                for key, *columns in self.db.execute(_FIND, (stream, orjson.dumps(keys).decode())):
                    records[stream, key] = Stored(*columns)
        return records

    def read_large(self, location: Place) -> str:
        return indexing.read_chunks(self.db, *location[:2])

    def put(self, rows: Rows) -> None:
        buried = [(seq,) for seq, *_ in rows.buried]
        self.run_each("UPDATE record SET deleted = 1 WHERE seq = ?", buried)
        self.run_each("DELETE FROM document WHERE seq = ?", buried)
        self.run_each("INSERT INTO tombstone (seq, deleted_at) VALUES (?1, ?3)", rows.buried)
        self.run_each(_ADD_RECORD, rows.new)
        self.run_each(_CHANGE_RECORD, rows.existing)
        self.run_each("DELETE FROM tombstone WHERE seq = ?", [row[-1:] for row in rows.existing])
        self.run_each(_ADD_DOCUMENT, rows.documents)

    def log(self, entries: Sequence[Entry]) -> None:
        first = self.take("next_version", len(entries))
        self.run_each(
            "INSERT INTO change (version, stream, seq, fields, was_at, left_at)"
            " VALUES (?1, ?2, ?3, ?5, ?6, ?7)",
            [(version, *entry) for version, entry in enumerate(entries, start=first)],
        )

    def index(self) -> indexing.Index:
        return indexing.Index(self)

    def order(self, manifest: StreamManifest, data: dict[str, Any]) -> tuple[Any, ...]:
        return order_of(manifest, data)

    def documents(
        self, stream: StreamHandle, after: int
    ) -> Iterator[tuple[int, dict[str, Any], dict[str, Place]]]:
        return indexing.documents(self.db, stream.id, after)

    def clear_derived(self) -> None:
        indexing.clear_derived(self.db)
        self.recent_words.clear()
        self.note_removed()


def open_writer(path: Path | str, *, lock_seconds: int | None = None) -> "Writer":
    """Opens the store at `path` for writing; creates the folder, the file and its tables if new."""
    path, seconds = Path(path), LOCK_SECONDS if lock_seconds is None else lock_seconds
    try:
        _reserve(path)
        before = database_files.file_at(path) if path.exists() else None
        db = sqlite3.connect(path, timeout=seconds, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise Unavailable(f"Cannot open the store {path}: {error}. Check the path.") from error
    add_functions(db)
    writer = Writer(db, path, before or database_files.file_at(path), seconds)
    try:
        with explained(path, seconds):
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
    created = [path, *(folder for folder in path.parents if not folder.exists())]
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # SQLite reports what is wrong with a path
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
        for new in created:
            durable.sync_entry(new)


def _prepare(writer: Writer) -> None:
    db, path = writer.db, writer.path
    database_files.forget_stale_index(db, path)
    # One statement: another process may be creating a store in it.
    (foreign,) = db.execute(
        "SELECT user_version = 0 AND EXISTS (SELECT 1 FROM sqlite_master) FROM pragma_user_version"
    ).fetchone()
    if foreign:
        raise InvalidRequest(
            f"{path} is not a Rung store. Choose a different store (--store FILE)."
        )
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")  # every commit is on the disk when it returns
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    db.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    (layout,) = db.execute("PRAGMA user_version").fetchone()
    if layout > NEWEST:
        raise InvalidRequest(
            f"{path} was written by a newer version of Rung. Install that version or a later one."
        )
    if layout and layout not in LAYOUTS:
        raise InvalidRequest(
            f"{path} was written before the first release. Import the original files again into a "
            "new store (--store FILE)."
        )
    migrate(db)  # without foreign keys, because it replaces tables
    add_tables(db)
    db.execute("PRAGMA foreign_keys = ON")
    is_current = writer.meta("fold_version") == FOLD_VERSION
    if is_current and writer.meta("secret") and writer.meta("epoch"):
        return
    with writer.transaction():
        if not writer.meta("secret"):
            writer.set_meta("secret", secrets.token_hex(SECRET_BYTES))
            for index in INDEXES:
                tune(db, index)
        if writer.meta("fold_version") not in (None, FOLD_VERSION):
            writer.rebuild()
        writer.set_meta("fold_version", FOLD_VERSION)
