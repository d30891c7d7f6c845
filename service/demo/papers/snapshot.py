"""Writes the demo's papers as a snapshot: one database file and a static tree beside it."""

import hashlib
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from service.demo.papers import rows, static
from service.demo.papers.shelf import DemoPaper, papers

NAME = "snapshot.db"
STATIC = "static"
LAYOUT = "1"  # raise it if the same texts are to be written in another way
SCHEMA = Path(__file__).with_name("schema.sql")
FINISH = Path(__file__).with_name("finish.sql")
FACET = Path(__file__).with_name("facet.sql")
#: Facets with tables of their own besides the common ones.
OWN_TABLES = ("author", "keyword", "institution", "tag", "venue")


def write(folder: Path) -> Path:
    """Writes `folder/snapshot.db` and `folder/static`; returns the path of the database.

    Equal texts give an equal snapshot. A reader finds the old one whole or the new one whole: the
    files of the tree come first, then the database, by a rename.
    """
    return _write(folder, list(papers()))


def write_once(folder: Path) -> Path:
    """Writes the snapshot unless a whole one of the same texts exists."""
    shelf = list(papers())
    path = folder / NAME
    return path if _is_current(folder, shelf) else _write(folder, shelf)


def build_id(shelf: Iterable[DemoPaper]) -> str:
    """32 hex digits that change with any text and with the layout."""
    digest = hashlib.sha256(LAYOUT.encode() + SCHEMA.read_bytes())
    for paper in shelf:
        digest.update(repr(paper).encode())
    return digest.hexdigest()[:32]


def _write(folder: Path, shelf: Sequence[DemoPaper]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unfinished-") as unfinished:
        beside = Path(unfinished) / "file"
        for paper in shelf:
            for name, content in static.files(paper):
                file = folder / STATIC / name
                file.parent.mkdir(parents=True, exist_ok=True)
                beside.write_bytes(content)
                beside.replace(file)
        _fill(beside, shelf)
        return beside.replace(folder / NAME)


def _fill(path: Path, shelf: Sequence[DemoPaper]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(SCHEMA.read_text(encoding="utf-8"))
        db.execute("BEGIN")
        meta = {"snapshot_build_id": build_id(shelf), "built_at": static.BUILT_AT}
        db.executemany("INSERT INTO snapshot_meta VALUES (?, ?)", meta.items())
        places = {name: at for at, name in enumerate(sorted(p.paper_id for p in shelf), start=1)}
        for paper in shelf:
            rows.put(db, paper, places[paper.paper_id])
        db.execute("COMMIT")
        own = "".join(FACET.read_text(encoding="utf-8").format(name) for name in OWN_TABLES)
        db.executescript(f"BEGIN; {FINISH.read_text(encoding='utf-8')} {own} COMMIT; VACUUM;")


def _is_current(folder: Path, shelf: Sequence[DemoPaper]) -> bool:
    """True if a whole snapshot of these texts exists."""
    named = "SELECT value FROM snapshot_meta WHERE key = 'snapshot_build_id'"
    tree = folder / STATIC
    try:
        uri = f"{(folder / NAME).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            if db.execute(named).fetchone() != (build_id(shelf),):
                return False
            if db.execute("PRAGMA quick_check").fetchone() != ("ok",):
                return False
        files = (file for paper in shelf for file in static.files(paper))
        return all((tree / name).read_bytes() == content for name, content in files)
    except (OSError, sqlite3.DatabaseError):
        return False
