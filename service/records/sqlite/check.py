"""Checks a store file to the requested depth, without serving or locking it."""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

from evidence.fold import FOLD_VERSION
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service import database_files
from service.access import tokens
from service.records.engine.failures import NEWER
from service.records.engine.health import Depth, Health, Verdict
from service.records.sqlite import index_check
from service.records.sqlite.ddl import NEWEST
from service.records.sqlite.reader import STEPS_BETWEEN_CHECKS
from service.records.sqlite.transactions import INDEXES, explained

LOG_MARK = slice(18, 20)  # of the header: the versions for writing and reading
#: The beginnings of SQLite's messages for files that are not databases or have other tables.
FOREIGN = ("file is not a database", "no such table", "no such column")
DAMAGE_CHARS = 200


def check(path: Path, depth: Depth, deadline: Deadline | None = None) -> Health:
    """The health of the store at `path`, as far as the depth and the deadline allow."""
    if depth is Depth.CONTENTS:
        return _compared(path)
    log = path.with_name(f"{path.name}-wal")
    deadline = deadline or Deadline.after(BUDGETS.doctor_seconds)
    look = partial(_sampled, path, deadline)
    if depth is Depth.HEADER:
        look = partial(_header, path)
    try:
        alone = not log.exists()
        health = look(alone)
        # Somebody may have begun to write meanwhile.
        return look(False) if alone and log.exists() else health
    except (sqlite3.Error, OSError) as error:
        return Health(_unreadable(error))


def opened(path: Path, alone: bool) -> closing[sqlite3.Connection]:
    # Opened normally, a file without a log gets one, which may then belong to the wrong user.
    mode = "mode=ro&immutable=1" if alone else "mode=ro"
    db = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)
    if not alone:
        database_files.forget_stale_index(db, path)
    return closing(db)


def _unreadable(error: sqlite3.Error | OSError) -> Verdict:
    if isinstance(error, FileNotFoundError):
        return Verdict("it does not exist", "store-unreadable")
    text = error.strerror if isinstance(error, OSError) else str(error)
    reason = (text or "input/output error").lower()
    foreign = isinstance(error, sqlite3.Error) and reason.startswith(FOREIGN)
    return Verdict(reason, "store-foreign" if foreign else "store-unreadable")


def _header(path: Path, alone: bool) -> Health:
    if not stat.S_ISREG(path.stat().st_mode):
        return Health(Verdict("it is not a regular file", "store-foreign"))
    with opened(path, alone) as db:
        return Health(_version(db))


def _version(db: sqlite3.Connection) -> Verdict:
    """Whether this version of Rung can read the tables and the indexes."""
    (layout,) = db.execute("PRAGMA user_version").fetchone()
    meta = dict(db.execute("SELECT key, value FROM meta"))
    facts = {"layout": layout, "newest": NEWEST}
    if layout > NEWEST:
        return Verdict(f"it {NEWER}", "store-newer", facts)
    if layout < NEWEST or meta.get("fold_version") != FOLD_VERSION or not meta.get("secret"):
        older = "an older version of Rung wrote it; upgrade it with `rung stats`"
        return Verdict(older, "store-older", facts)
    return Verdict("")


def _sampled(path: Path, deadline: Deadline, alone: bool) -> Health:
    with opened(path, alone) as db:
        state = _version(db)
        (records,) = db.execute("SELECT count(*) FROM record WHERE deleted = 0").fetchone()
        grants = _grants(db)
        db.set_progress_handler(deadline.expired, STEPS_BETWEEN_CHECKS)
        damage, complete = _damage(db, deadline.expired)
    if state.problem is None:
        note = "" if complete else "; the file is too large to check here"
        state = Verdict(f"{path} can be opened; schema version: {NEWEST}, records: {records}{note}")
        if damage is not None:
            state = Verdict(damage[:DAMAGE_CHARS], "store-damaged")
        elif alone and _keeps_log(path) and not os.access(path.parent, os.W_OK):
            state = Verdict("", "store-in-read-only-directory")
    exposed = path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    privacy = Verdict(f"other users cannot read {path}", "store-exposed" if exposed else None)
    return Health(state, privacy, grants)


def _keeps_log(path: Path) -> bool:
    """Whether reading the file creates a log next to it, so that its folder must be writable."""
    with path.open("rb") as file:
        return file.read(LOG_MARK.stop)[LOG_MARK] == b"\2\2"


def _grants(db: sqlite3.Connection) -> dict[str, int]:
    """The number of active, expired and revoked grants and packages."""
    counts = {"active": 0, "expired": 0, "revoked": 0}
    for table in ('"grant"', "package"):
        for revoked_at, expires_at in db.execute(f"SELECT revoked_at, expires_at FROM {table}"):
            counts[tokens.state(revoked_at, expires_at, datetime.now(UTC))] += 1
    return counts


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


def _compared(path: Path) -> Health:
    from service.records.sqlite.contents import faults_of

    hidden = 0
    with explained(path), opened(path, False) as db:  # others may write meanwhile
        faults = faults_of(db)
        if not faults:
            ((hidden,),) = db.execute("SELECT count(*) FROM stream WHERE name < char(1)")
    return Health(Verdict(""), faults=faults, hidden_streams=hidden, size_bytes=path.stat().st_size)
