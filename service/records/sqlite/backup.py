"""Copies of a whole store: backups of a store in use, and replacements for it.

A copy is written next to its target under another name and renamed once it is on the disk, so a
killed process leaves the old file or the new one; see `database_files.replacing`. Readers detect
another file at the path, and so does every writer before it writes.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from evidence.errors import InvalidRequest, Unavailable
from service import database_files
from service.records.engine.health import Depth
from service.records.sqlite.check import check, opened
from service.records.sqlite.staging import erase_hidden
from service.records.sqlite.transactions import explained
from service.records.sqlite.vectors import RESET
from service.records.sqlite.writer import OWNER_ONLY, Writer, open_writer

#: The tables with grants and packages, and the second column of those that end with `revoked_at`.
_ACCESS: Final = {'"grant"': "grant_id", "package": "package_id", "member": None}
#: The data that changes with every record, stream or connection, but not with a grant.
_CONTENT: Final = (
    "SELECT key, value FROM meta WHERE key LIKE 'next%' AND value > 1",
    "SELECT * FROM connection",
    "SELECT * FROM stream",
)


def back_up(store: Path, target: Path) -> None:
    """Writes a copy of the store, as it is now, to a file; replaces an existing file."""
    _require_stores(store, target, "The store cannot be its own backup. Name another file.")
    with explained(store), _beside(target) as copy:
        _copy(store, copy, used=True)
        database_files.replace(copy, target)


def restore(source: Path, store: Path) -> None:
    """Replaces the store with a backup.

    Grants that were revoked after the backup stay revoked. Bookmarks of changes that the backup
    does not have are refused from then on: their readers start over.
    """
    _require_stores(source, store, "The store cannot be restored from itself. Name a backup.")
    store.parent.mkdir(parents=True, exist_ok=True)
    with replacement(store, source) as writer:
        (verdict,) = writer.db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise InvalidRequest(f"{source} is damaged ({verdict}). Nothing was changed.")


def _require_stores(source: Path, target: Path, same: str) -> None:
    """Refuses a source that is not a store, and a target that is another file or the source."""
    _require_store(source)
    if target.exists():
        _require_store(target)
        if source.samefile(target):
            raise InvalidRequest(same)


def repair(store: Path) -> None:
    """Rebuilds everything that is derived from records; see `replacement`."""
    with replacement(store, store) as writer:
        writer.rebuild()
        with writer.transaction():
            for statement in RESET:
                writer.run(statement)
        erase_hidden(writer)
        writer.finish()


@contextmanager
def new_file(target: Path) -> Iterator[Writer]:
    """A new store to write to, which appears at `target` only at the end."""
    if target.exists():
        raise InvalidRequest(f"{target} already exists. Choose a new file.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with explained(target), _beside(target) as copy:
        with open_writer(copy) as writer:
            yield writer
        database_files.replace(copy, target)


@contextmanager
def replacement(store: Path, source: Path) -> Iterator[Writer]:
    """A copy of `source` to write to, which replaces the store at the end.

    A copy of the store itself gets the grants that were created or revoked meanwhile. Raises
    `Unavailable`, having changed nothing, if anything else was written to the store.
    """
    same = store == source
    with (
        explained(store),
        database_files.alone(store) if store.exists() else nullcontext(),
        _beside(store) as copy,
    ):
        _copy(source, copy, used=same)
        with closing(sqlite3.connect(copy)) as db:
            content = _content(db)
        with open_writer(copy) as writer:
            yield writer
        with database_files.replacing(copy, store) as db:
            if same and content != _content(db):
                raise Unavailable(
                    f"Records were written to {store} while the command was running, so nothing "
                    "was changed. Run the command again."
                )
            _keep_access(db, copy, all_of_it=same)


def _require_store(path: Path) -> None:
    """Refuses a file that is not a store; a damaged one, or one of another version, may pass."""
    state = check(path, Depth.HEADER).state
    if state.problem == "store-foreign" or not path.exists():
        raise InvalidRequest(f"{path} is not a Rung store: {state.message}.")


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """The path for a copy that will be renamed to `target`; removes leftovers of earlier ones."""
    copy = target.with_name(f".{target.name}.copy")
    _discard(copy)
    try:
        yield copy
    finally:
        _discard(copy)


def _discard(copy: Path) -> None:
    copy.unlink(missing_ok=True)
    database_files.remove_beside(copy)


def _copy(source: Path, copy: Path, *, used: bool) -> None:
    """Copies the store at `source`, as one snapshot, to a new file that only its owner can read.

    Reading a store that is not `used` leaves no files next to it, and its folder need not be
    writable.
    """
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
    alone = not used and not source.with_name(f"{source.name}-wal").exists()
    with opened(source, alone) as there, closing(sqlite3.connect(copy)) as here:
        there.backup(here)


def _content(db: sqlite3.Connection) -> list[Any]:
    with suppress(sqlite3.DatabaseError):  # the store is damaged: nobody writes to it
        return [db.execute(query).fetchall() for query in _CONTENT]
    return []


def _keep_access(db: sqlite3.Connection, copy: Path, *, all_of_it: bool) -> None:
    """Copies the grants and packages of the store, or only their revocations, into the copy.

    The copy keeps its own if the store is damaged or missing.
    """
    # Not a writer: it would wait for its turn, and the writer whose turn it is waits for our lock.
    with closing(sqlite3.connect(copy, isolation_level=None)) as here:
        here.execute("PRAGMA synchronous = OFF")  # `replacing` writes the copy to the disk
        for table, key in _ACCESS.items():
            try:
                found = db.execute(f"SELECT * FROM {table}")
                rows = found.fetchall()
            except sqlite3.DatabaseError:
                continue
            if all_of_it:
                here.execute(f"DELETE FROM {table}")
                marks = ", ".join("?" * len(found.description))
                here.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            elif key:
                revoke = f"UPDATE {table} SET revoked_at = ? WHERE {key} = ? AND revoked_at IS NULL"
                here.executemany(revoke, [(row[-1], row[1]) for row in rows if row[-1]])
        here.execute("PRAGMA wal_checkpoint(TRUNCATE)")
