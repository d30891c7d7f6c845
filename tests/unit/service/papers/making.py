"""Papers written into a copy of a snapshot as its builder writes them."""

import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from service.papers.snapshot import Snapshot, open_snapshot
from tests.helpers.snapshots import DATA, changed, place

RELEASES = ("papers", "papers-legacy")
_CJK = "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uac00-\ud7af]"


@dataclass(frozen=True)
class Made:
    """A paper to write."""

    paper_id: str
    title: str = "Untitled"
    summary: str = ""
    source: str = ""
    translated: str = ""
    languages: Sequence[str] = ()
    authors: Sequence[str] = ()
    year: str = "2020"
    venue: str = "unknown"
    doi: str | None = None
    values: dict[str, Sequence[str]] = field(default_factory=dict)  # by keyword, tag, ...


def opened(release: str) -> Snapshot:
    """A release as it is in the repository."""
    return open_snapshot(DATA / release / "snapshot.db")


def made(
    folder: Path, *papers: Made, change: Callable[[sqlite3.Connection], object] = id
) -> Snapshot:
    """Today's snapshot with more papers in it, and whatever else is to be changed."""

    def write(db: sqlite3.Connection) -> None:
        for paper in papers:
            _write(db, paper)
        change(db)

    return open_snapshot(changed(place(folder / "snapshot.db"), write))


def spaced(text: str) -> str:
    """A text as it is indexed: spaces between CJK neighbours, none beside Latin letters."""
    return re.sub(f"(?<={_CJK})(?={_CJK})", " ", text)


def _write(db: sqlite3.Connection, paper: Made) -> None:
    db.execute(
        "INSERT INTO paper (paper_id, paper_key, paper_key_type, doi, title, year, month, "
        "publication_date, venue, preferred_summary_template, summary_preview, "
        "source_md_content_hash) VALUES (?, ?, 'meta', ?, ?, ?, '01', '', ?, 'simple', ?, ?)",
        (
            *(paper.paper_id, f"meta:{paper.paper_id}", paper.doi, paper.title, paper.year),
            *(paper.venue, paper.summary[:320], "0" * 64 if paper.source else None),
        ),
    )
    for lang in paper.languages:
        db.execute(
            "INSERT INTO paper_translation VALUES (?, ?, ?)", (paper.paper_id, lang, "1" * 64)
        )
    for table, values in {"author": paper.authors, **paper.values}.items():
        for value in values:
            _link(db, paper.paper_id, table, value.lower())
    index(db, paper)


def index(db: sqlite3.Connection, paper: Made) -> None:
    """The full-text rows of a paper."""
    metadata = " ".join([paper.title, *paper.authors, paper.venue, paper.year, paper.doi or ""])
    texts = (paper.title, paper.summary, paper.source, paper.translated, metadata)
    db.execute(
        "INSERT INTO paper_fts VALUES (?, ?, ?, ?, ?, ?)", (paper.paper_id, *map(spaced, texts))
    )
    db.execute(
        "INSERT INTO paper_fts_trigram VALUES (?, ?, ?)",
        (paper.paper_id, paper.title.lower(), paper.venue.lower()),
    )


def _link(db: sqlite3.Connection, paper_id: str, table: str, value: str) -> None:
    db.execute(
        f"INSERT INTO {table} (value, paper_count) VALUES (?, 1) "
        "ON CONFLICT (value) DO UPDATE SET paper_count = paper_count + 1",
        (value,),
    )
    db.execute(
        f"INSERT INTO paper_{table} SELECT ?, {table}_id FROM {table} WHERE value = ?",
        (paper_id, value),
    )
