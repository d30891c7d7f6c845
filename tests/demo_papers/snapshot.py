"""Writes the demo's papers as a snapshot: one database file and a static tree beside it.

`python -m tests.demo_papers.snapshot` packs both into the archive that the demo unpacks.
"""

import hashlib
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from service.demo.papers import ARCHIVE, NAME
from tests.demo_papers import rows, static
from tests.demo_papers.shelf import DemoPaper, papers

LAYOUT = "1"  # raise it if the same texts are to be written in another way
SCHEMA = Path(__file__).with_name("schema.sql")
FINISH = Path(__file__).with_name("finish.sql")
FACET = Path(__file__).with_name("facet.sql")
#: Facets with tables of their own besides the common ones.
OWN_TABLES = ("author", "keyword", "institution", "tag", "venue")


def build(folder: Path) -> None:
    """Writes the snapshot and its tree into an empty folder. Equal texts give equal files."""
    shelf = list(papers())
    for paper in shelf:
        for name, content in static.files(paper):
            file = folder / "static" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    _fill(folder / NAME, shelf)


def pack(folder: Path, archive: Path) -> None:
    """Packs the files of a folder, always in the same order and with the same times."""
    with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            packed.writestr(
                ZipInfo(file.relative_to(folder).as_posix()), file.read_bytes(), ZIP_DEFLATED, 9
            )


def build_id(shelf: Iterable[DemoPaper]) -> str:
    """32 hex digits that change with any text and with the layout."""
    digest = hashlib.sha256(LAYOUT.encode() + SCHEMA.read_bytes())
    for paper in shelf:
        digest.update(repr(paper).encode())
    return digest.hexdigest()[:32]


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


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        build(Path(made))
        pack(Path(made), ARCHIVE)
    sys.stdout.write(f"{ARCHIVE.name}: {ARCHIVE.stat().st_size} bytes\n")
