"""A real snapshot grown to thousands of papers: twins with new ids and varied texts."""

import hashlib
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.stores import kept

SOURCE = Path("tests/data/papers/snapshot.db")
VERSION = 1
SEED = 20260301

HUGE_ID = "00000000000000000000000000000050"
HUGE_BYTES = 50_000_000
HUGE_TITLE = "A Source of Fifty Megabytes"
INDEXED_CHARS = 100_000  # of the huge source are in the full-text table

#: Tables whose rows for a paper are copied for its twin.
COPIED = (
    *("paper_summary", "paper_translation", "paper_author", "paper_keyword"),
    *("paper_institution", "paper_tag", "paper_venue", "paper_facet"),
)
FACETS = ("author", "keyword", "institution", "tag", "venue")

_SENTENCE = re.compile(r"(?<=[.。]) +")


@dataclass(frozen=True, slots=True)
class Grown:
    """A grown snapshot, and the paper whose source is huge."""

    snapshot: Path
    huge_id: str
    huge_chars: int


def open_grown(papers: int) -> Grown:
    """The snapshot grown to `papers`; built if it does not exist."""
    layout = repr((VERSION, SEED, HUGE_BYTES, hashlib.sha256(SOURCE.read_bytes()).hexdigest()))
    folder = kept(f"papers-{papers}", layout, lambda folder: _build(folder, papers))
    return Grown(folder / "snapshot.db", HUGE_ID, int((folder / "chars").read_text()))


def _build(folder: Path, papers: int) -> None:
    chars = grow(SOURCE, folder / "snapshot.db", papers)
    (folder / "chars").write_text(f"{chars}")


def grow(source: Path, target: Path, papers: int, *, huge_bytes: int = HUGE_BYTES) -> int:
    """Grows a copy of `source` with its static files to `papers`.

    Twins share the source files of their originals and have no summary files. Returns the code
    points of the huge source.
    """
    shutil.copytree(source.parent / "static", target.parent / "static")
    shutil.copyfile(source, target)
    with closing(sqlite3.connect(target, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        (there,) = db.execute("SELECT count(*) FROM paper").fetchone()
        chars = _add_huge(db, target.parent / "static", huge_bytes)
        random = Random(SEED)
        for number, twin_ids in enumerate(_rounds(db, papers - there - 1), start=1):
            _add_twins(db, random, twin_ids, number)
        _count(db)
        for table in ("paper_fts", "paper_fts_trigram"):
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
        db.execute("COMMIT")
        db.execute("VACUUM")
    return chars


def _rounds(db: sqlite3.Connection, wanted: int) -> Iterator[list[str]]:
    """Yields the ids to make twins of: all papers, repeatedly, until there are `wanted`."""
    ids = [row[0] for row in db.execute("SELECT paper_id FROM paper ORDER BY paper_id")]
    ids.remove(HUGE_ID)
    while wanted > 0:
        yield ids[:wanted]
        wanted -= len(ids)


def _add_twins(db: sqlite3.Connection, random: Random, ids: list[str], number: int) -> None:
    db.execute("CREATE TEMP TABLE twin (paper_id TEXT PRIMARY KEY, new TEXT NOT NULL)")
    new = {
        paper_id: hashlib.sha256(f"{paper_id}/{number}".encode()).hexdigest() for paper_id in ids
    }
    db.executemany("INSERT INTO twin VALUES (?, ?)", [(old, key[:32]) for old, key in new.items()])
    own = {
        "paper_id": "new",
        "paper_key": f"paper_key || '.{number}'",
        "doi": f"doi || '.{number}'",
        "title": f"title || ' ({number})'",
    }
    _copy(db, "paper", own)
    _copy(db, "paper_key_alias", {"paper_id": "new", "paper_key": own["paper_key"]})
    for table in COPIED:
        _copy(db, table, {"paper_id": "new"})
    texts = db.execute(
        "SELECT new, title, summary, source, translated, metadata FROM paper_fts"
        " JOIN twin USING (paper_id)"
    )
    for paper_id, title, *columns in texts.fetchall():
        varied = [vary(random, text, f"study{number}") for text in columns]
        row = (paper_id, f"{title} ({number})", *varied)
        db.execute("INSERT INTO paper_fts VALUES (?, ?, ?, ?, ?, ?)", row)
    db.execute(
        f"INSERT INTO paper_fts_trigram SELECT new, title || ' ({number})', venue"
        " FROM paper_fts_trigram JOIN twin USING (paper_id)"
    )
    db.execute("DROP TABLE twin")


def vary(random: Random, text: str, mark: str) -> str:
    """The sentences of a text in another order, one in eight left out, and `mark` at the end."""
    sentences = [part for part in _SENTENCE.split(text) if random.random() > 1 / 8]
    random.shuffle(sentences)
    return " ".join((*sentences, mark)) if text else ""


def _copy(db: sqlite3.Connection, table: str, changed: dict[str, str]) -> None:
    """Copies each row of a paper for its twin, with some columns changed."""
    names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changed.get(name, name) for name in names)
    db.execute(f"INSERT INTO {table} SELECT {values} FROM {table} JOIN twin USING (paper_id)")


def _add_huge(db: sqlite3.Connection, static: Path, size: int) -> int:
    """Adds a paper whose source repeats the longest one in numbered chapters."""
    page = max(static.glob("md/*.md"), key=lambda file: file.stat().st_size).read_text("utf-8")
    times = size // len(page.encode()) + 1
    text = "\n".join(f"# Chapter {number}\n\n{page}" for number in range(1, times + 1))
    name = hashlib.sha256(text.encode()).hexdigest()
    (static / f"md/{name}.md").write_text(text, encoding="utf-8", newline="\n")
    db.execute(
        "INSERT INTO paper (paper_id, paper_key, paper_key_type, title, year, month,"
        " publication_date, venue, preferred_summary_template, summary_preview,"
        " source_md_content_hash) VALUES (?, 'bib:huge', 'bib', ?, '2026', '03', '2026-03',"
        " 'unknown', 'simple', '', ?)",
        (HUGE_ID, HUGE_TITLE, name),
    )
    words = " ".join(text[:INDEXED_CHARS].split())
    row = (HUGE_ID, HUGE_TITLE, words, HUGE_TITLE)
    db.execute("INSERT INTO paper_fts (paper_id, title, source, metadata) VALUES (?, ?, ?, ?)", row)
    return len(text)


def _count(db: sqlite3.Connection) -> None:
    """Corrects the counts that snapshots store."""
    for name in FACETS:
        db.execute(
            f"UPDATE {name} SET paper_count ="
            f" (SELECT count(*) FROM paper_{name} AS p WHERE p.{name}_id = {name}.{name}_id)"
        )
    db.execute(
        "UPDATE facet_node SET paper_count ="
        " (SELECT count(*) FROM paper_facet AS p WHERE p.node_id = facet_node.node_id)"
    )
    for name in ("year", "month"):
        db.execute(f"DELETE FROM {name}_count")
        db.execute(f"INSERT INTO {name}_count SELECT {name}, count(*) FROM paper GROUP BY 1")
