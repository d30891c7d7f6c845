"""Copies of real snapshots of papers, for tests that change them."""

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def copied(release: str, where: Path) -> Path:
    """Copies a release with its assets; returns the path of its file."""
    return shutil.copytree(DATA / release, where / release) / "snapshot.db"


def place(path: Path, release: str = "papers") -> Path:
    """Copies the file of a release to a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return shutil.copyfile(DATA / release / "snapshot.db", path)


def retitled(path: Path, title: str) -> Path:
    """Gives every paper the same title, in the file itself."""
    return changed(path, lambda db: db.execute("UPDATE paper SET title = ?", (title,)))


def changed(path: Path, change: Callable[[sqlite3.Connection], object]) -> Path:
    """Writes into a file as its builder does; leaves no files next to it."""
    with closing(sqlite3.connect(path)) as db, db:
        change(db)
    return path


def tree(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
