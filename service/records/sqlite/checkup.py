"""Examines a store without serving it, for anything that may prevent it from answering."""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from evidence.fold import FOLD_VERSION
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.access import tokens
from service.records.engine.failures import NEWER
from service import database_files
from service.records.sqlite import index_check
from service.records.sqlite.ddl import NEWEST as NEWEST
from service.records.sqlite.reader import STEPS_BETWEEN_CHECKS
from service.records.sqlite.transactions import INDEXES

LOG_MARK = slice(18, 20)  # of the header: the versions for writing and reading
#: The beginnings of SQLite's messages for files that are not databases or have other tables.
FOREIGN = ("file is not a database", "no such table", "no such column")


class Unreadable(Exception):
    """The file cannot be read as a store. The message is the reason, without a path."""


class Absent(Unreadable):
    """There is no file."""


class Foreign(Unreadable):
    """The file is not a store."""


@dataclass(frozen=True, slots=True)
class Checkup:
    """The state of a store. `damage` is None if none was found; `checked` tells whether everything
    was examined in time; `grants` counts them by state."""

    layout: int
    same_fold: bool
    has_secret: bool
    records: int
    grants: dict[str, int]
    servable: bool  # the folder is writable, if reading the store requires it
    private: bool
    damage: str | None
    checked: bool

    @property
    def readable(self) -> bool:
        """Whether this version can read its tables and its indexes."""
        return self.layout == NEWEST and self.same_fold


def examine(path: Path, deadline: Deadline) -> Checkup:
    """Examines the store at `path`; raises `Unreadable`."""
    log = path.with_name(f"{path.name}-wal")
    try:
        alone = not log.exists()
        found = _examined(path, deadline, alone)
        if alone and log.exists():  # somebody began to write meanwhile
            found = _examined(path, deadline, False)
        return found
    except (sqlite3.Error, OSError) as error:
        raise _unreadable(error) from error


def recognise(path: Path) -> None:
    """Raises `Unreadable` if the file at `path` cannot be served; reads only its header."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise Foreign("it is not a regular file")
        with opened(path, not path.with_name(f"{path.name}-wal").exists()) as db:
            (layout,) = db.execute("PRAGMA user_version").fetchone()
            meta = dict(db.execute("SELECT key, value FROM meta"))
    except (sqlite3.Error, OSError) as error:
        raise _unreadable(error) from error
    if layout > NEWEST:
        raise Unreadable(f"it {NEWER}")
    if layout != NEWEST or meta.get("fold_version") != FOLD_VERSION:
        raise Unreadable("an older version wrote it; upgrade it with `rung stats`")


def _unreadable(error: sqlite3.Error | OSError) -> Unreadable:
    if isinstance(error, FileNotFoundError):
        return Absent("it does not exist")
    text = error.strerror if isinstance(error, OSError) else str(error)
    reason = (text or "input/output error").lower()
    foreign = isinstance(error, sqlite3.Error) and reason.startswith(FOREIGN)
    return (Foreign if foreign else Unreadable)(reason)


def opened(path: Path, alone: bool) -> closing[sqlite3.Connection]:
    # Opened normally, a file without a log gets one, which may then belong to the wrong user.
    mode = "mode=ro&immutable=1" if alone else "mode=ro"
    db = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)
    if not alone:
        database_files.forget_stale_index(db, path)
    return closing(db)


def _examined(path: Path, deadline: Deadline, alone: bool) -> Checkup:
    with opened(path, alone) as db:
        (layout,) = db.execute("PRAGMA user_version").fetchone()
        meta = dict(db.execute("SELECT key, value FROM meta"))
        (records,) = db.execute("SELECT count(*) FROM record WHERE deleted = 0").fetchone()
        grants = _grants(db)
        db.set_progress_handler(deadline.expired, STEPS_BETWEEN_CHECKS)
        damage, checked = _damage(db, deadline.expired)
    return Checkup(
        layout=layout,
        same_fold=meta.get("fold_version") == FOLD_VERSION,
        has_secret=bool(meta.get("secret")),
        records=records,
        grants=grants,
        servable=not alone or not _keeps_log(path) or os.access(path.parent, os.W_OK),
        private=not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO),
        damage=damage,
        checked=checked,
    )


def _keeps_log(path: Path) -> bool:
    """Whether reading the file creates a log next to it."""
    with path.open("rb") as file:
        return file.read(LOG_MARK.stop)[LOG_MARK] == b"\2\2"


def _grants(db: sqlite3.Connection) -> dict[str, int]:
    """The number of active, expired and revoked grants and packages."""
    found = {"active": 0, "expired": 0, "revoked": 0}
    for table in ('"grant"', "package"):
        for revoked_at, expires_at in db.execute(f"SELECT revoked_at, expires_at FROM {table}"):
            found[tokens.state(revoked_at, expires_at, datetime.now(UTC))] += 1
    return found


def _damage(db: sqlite3.Connection, late: Callable[[], bool]) -> tuple[str | None, bool]:
    """(damage, whether everything was examined) for the pages and the words of the indexes."""
    try:
        for table in INDEXES:
            db.execute(f"CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, {table}, row)")
            db.execute("SELECT count(*) FROM temp.words").fetchone()
            db.execute("DROP TABLE temp.words")
        lost = index_check.missing(db, [*index_check.sample(db, BUDGETS.index_doctor_rows)])
        if lost:
            return "words of records are not in the full-text index", True
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return (None, False) if late() else (str(error), True)
    return (None if verdict == "ok" else str(verdict)), True
