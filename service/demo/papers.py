"""Thirteen short papers for trying out the paper tools, in a snapshot with unchanging contents.

`papers.zip` has the snapshot and its static tree; `make demo-data` writes it from the texts in
`tests/demo_papers`, which are in the public domain.
"""

from pathlib import Path
from shutil import unpack_archive
from tempfile import TemporaryDirectory

from service import database_files

ARCHIVE = Path(__file__).with_suffix(".zip")
NAME = "snapshot.db"


def write(folder: Path) -> Path:
    """Writes `folder/snapshot.db` and `folder/static`; returns the path of the database.

    A reader sees either the whole old snapshot or the whole new one: the files of the tree are
    written first, then the database, by a rename.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".unfinished-") as unfinished:
        unpack_archive(ARCHIVE, unfinished)
        for file in Path(unfinished, "static").rglob("*.*"):
            target = folder / file.relative_to(unfinished)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)
        database_files.replace(Path(unfinished, NAME), folder / NAME)
    return folder / NAME
