"""Reads a snapshot from disk, and checks that it is a deepresearch-flow snapshot.

Snapshots use a write-ahead log, so opening one normally leaves files next to it or fails in a
read-only folder; opening it `immutable` ignores its log. They have no version number: releases
differ by columns, so the common ones are required.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.papers import LISTED
from service import database_files
from service.database_files import LOGS

PRIVATE = "rung-snapshot-"

Mark = tuple[int, int, int, int]


class SnapshotRefused(Exception):
    """The file cannot be served. The message is the reason, without a path."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The identity of a file and its logs: (device, inode, size, mtime in ns) of each."""

    file: str  # the real one, behind links
    mark: Mark
    logs: tuple[tuple[str, Mark], ...]  # by suffix; only those with content


def look(path: str | Path) -> Stamp:
    """The stamp of a file, with links resolved. Raises `SnapshotRefused` if there is no file."""
    real = os.path.realpath(path)
    try:
        status = os.stat(real)
    except OSError as error:
        raise SnapshotRefused(f"it cannot be read: {reason(error)}") from error
    if not stat.S_ISREG(status.st_mode):
        raise SnapshotRefused("it is not a regular file")
    if not os.access(real, os.R_OK):
        raise SnapshotRefused("it cannot be read: permission denied")
    logs = ((ending, _log(real + ending)) for ending in LOGS)
    return Stamp(real, mark(status), tuple((ending, log) for ending, log in logs if log))


def mark(status: os.stat_result) -> Mark:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def reason(error: OSError) -> str:
    """The system's error text, without a path."""
    return (error.strerror or "input/output error").lower()


@contextmanager
def whole(stamp: Stamp) -> Iterator[Path]:
    """A file with all content: the file itself, or a private copy with its log merged.

    The copy is removed at the end; connections to it stay usable. Raises `SnapshotRefused`, also
    at the end, if the file changed since the stamp was taken.
    """
    if not stamp.logs:
        yield Path(stamp.file)
        _check_unchanged(stamp)
        return
    _sweep()
    with tempfile.TemporaryDirectory(prefix=f"{PRIVATE}{os.getpid()}-") as folder:
        copy = Path(folder) / "snapshot.db"
        try:
            for ending in ("", *(ending for ending, _ in stamp.logs)):
                shutil.copyfile(stamp.file + ending, f"{copy}{ending}")
        except OSError as error:
            raise SnapshotRefused(f"it cannot be copied: {reason(error)}") from error
        _check_unchanged(stamp)
        try:
            database_files.complete(copy)
        except sqlite3.DatabaseError as error:
            raise SnapshotRefused(f"its write-ahead log cannot be read: {error}") from error
        yield copy


def _check_unchanged(stamp: Stamp) -> None:
    if look(stamp.file) != stamp:
        raise SnapshotRefused("it changed while it was being read")


def _sweep() -> None:
    """Removes private copies that dead processes of this user left behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PRIVATE}*"):
        process = folder.name.removeprefix(PRIVATE).partition("-")[0]
        with suppress(OSError):
            if process.isdecimal() and folder.lstat().st_uid == os.getuid() and _dead(int(process)):
                shutil.rmtree(folder)


def _dead(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


def _log(path: str) -> Mark | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return mark(status) if status.st_size else None


MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100

# Order matters: columns of a full-text table are weighted by position. The second is optional.
FULL_TEXT = {
    "paper_fts": ("paper_id", "title", "summary", "source", "translated", "metadata"),
    "paper_fts_trigram": ("paper_id", "title", "venue"),
}
NEEDED: dict[str, tuple[str, ...]] = {
    "snapshot_meta": ("key", "value"),
    "paper": (
        *("paper_id", "title", "year", "month", "publication_date", "venue"),
        *("preferred_summary_template", "summary_preview"),
    ),
    "paper_summary": ("paper_id", "template_tag"),
    "paper_translation": ("paper_id", "lang", "md_content_hash"),
    "paper_key_alias": ("paper_key", "paper_id"),
    **{name: (f"{name}_id", "value", "paper_count") for name in LISTED},
    **{f"paper_{name}": ("paper_id", f"{name}_id") for name in LISTED},
    "paper_fts": FULL_TEXT["paper_fts"],
    "paper_fts_content": ("id", "c0", "c1", "c2", "c3", "c4", "c5"),
}

#: Text columns that may be absent or empty.
OPTIONAL: dict[str, tuple[str, ...]] = {
    "paper": ("doi", "output_language", "pdf_content_hash", "source_md_content_hash"),
    "paper_summary": ("resource_path", "content_hash"),
    "paper_bibtex": ("bibtex_raw", "bibtex_key"),
}
#: Tables whose values are read into memory on demand.
SHORT = (*"paper paper_summary paper_translation paper_key_alias paper_bibtex".split(), *LISTED)
SHORT_CHARS = 16_384  # no title, name or tag is longer; a BibTeX entry may be

Columns = Mapping[str, frozenset[str]]


def check_header(file: Path) -> None:
    """Refuses files that are not SQLite databases or were truncated."""
    with file.open("rb") as source:
        header = source.read(HEADER_BYTES)
        size = os.fstat(source.fileno()).st_size
    if not header:
        raise SnapshotRefused("it is empty")
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        raise SnapshotRefused("it is not an SQLite file")
    page = int.from_bytes(header[16:18], "big")
    promised = int.from_bytes(header[28:32], "big") * (65_536 if page == 1 else page)
    if size < promised:
        raise SnapshotRefused(f"it is truncated: it has {size} of {promised} bytes")


def check_content(db: sqlite3.Connection, columns: Columns) -> None:
    """Refuses damaged tables or a damaged full-text index; reads all of both."""
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise SnapshotRefused("it is damaged")
    for table in FULL_TEXT.keys() & columns.keys():
        db.execute(f"CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, {table}, row)")
        db.execute("SELECT count(*) FROM temp.words").fetchone()
        db.execute("DROP TABLE temp.words")


def check_values(db: sqlite3.Connection, columns: Columns) -> None:
    """Refuses non-text values in text columns, and text without a paper.

    SQLite allows any value in any column. All other code relies on these checks.
    """
    for table in filter(columns.__contains__, SHORT):
        optional = columns[table].intersection(OPTIONAL.get(table, ()))
        for column in (*NEEDED.get(table, ()), *optional):
            fits = _is_text if column == "bibtex_raw" else _is_short
            if table in LISTED and column != "value":
                fits = _is_number
            values = _values(db, table, column)
            if not all(fits(cell) or (cell is None and column in optional) for cell in values):
                raise SnapshotRefused(f"table {table} has an invalid value in column {column}")
    if "paper_fts_trigram_content" in columns:
        for column in ("c0", "c1", "c2"):
            if not all(map(_is_short, _values(db, "paper_fts_trigram_content", column))):
                raise SnapshotRefused("table paper_fts_trigram has an invalid value")


def _values(db: sqlite3.Connection, table: str, column: str) -> Iterator[Any]:
    return (value for (value,) in db.execute(f"SELECT {column} FROM {table}"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_short(value: Any) -> bool:
    return _is_text(value) and len(value) <= SHORT_CHARS


def read_columns(db: sqlite3.Connection) -> Columns:
    """The columns of every table. Refuses a file without the columns of every release."""
    sql_by_table = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    columns_by_table = {name: _columns(db, name) for name in sql_by_table}
    for table, required in NEEDED.items():
        if table not in columns_by_table:
            raise SnapshotRefused(
                f"it is not a deepresearch-flow snapshot: there is no table {table}"
            )
        missing = [name for name in required if name not in columns_by_table[table]]
        if missing:
            raise SnapshotRefused(f"table {table} has no column {missing[0]}")
    for table in FULL_TEXT.keys() & columns_by_table.keys():
        required = FULL_TEXT[table]
        if (
            "using fts5" not in sql_by_table[table].lower()
            or columns_by_table[table][: len(required)] != required
        ):
            raise SnapshotRefused(f"table {table} is not the full-text index of a snapshot")
    return {name: frozenset(columns) for name, columns in columns_by_table.items()}


def read_build_id(db: sqlite3.Connection) -> str:
    row = db.execute("SELECT value FROM snapshot_meta WHERE key = 'snapshot_build_id'").fetchone()
    if row is None or not isinstance(row[0], str) or not row[0]:
        raise SnapshotRefused("it has no snapshot_build_id, so its build did not finish")
    return row[0]


def _columns(db: sqlite3.Connection, table: str) -> tuple[str, ...]:
    quoted = table.replace('"', '""')
    with suppress(sqlite3.OperationalError):  # a table of an extension that is not available
        return tuple(name for _, name, *_ in db.execute(f'PRAGMA table_info("{quoted}")'))
    return ()
