"""Exact bm25 over the rows Rung searches, in an index of its own: what the best ten truly are."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.corpus import Record
from evidence.fold import fold
from service.records.sqlite.ddl import TOKENIZER

TABLES = f"""
CREATE TABLE handle (number INTEGER PRIMARY KEY, id TEXT NOT NULL);
CREATE VIRTUAL TABLE fts USING fts5(body, content='', tokenize="{TOKENIZER}");
INSERT INTO fts (fts, rank) VALUES ('hashsize', 67108864);
"""
DEEPEST = 1_000  # rows looked at for records that tie with the last
NEARLY = 1e-9


@dataclass(frozen=True, slots=True)
class Best:
    """The ids of the best records, and of those that tie with the last of them."""

    ids: tuple[str, ...]
    ties: frozenset[str]


def handle_of(record: Record) -> str:
    """The id of a record as Rung prints it."""
    return f"source-{record.connection}/{record.stream}:{record.id}"


class Exact:
    """The index, open for writing."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {TABLES}")
        self._db.execute("BEGIN")

    def add(self, number: int, record: Record) -> None:
        """A row for each field, as Rung has one."""
        self._db.execute("INSERT INTO handle VALUES (?, ?)", (number, handle_of(record)))
        rows = [(number * 2, fold(record.title)), (number * 2 + 1, fold(record.body))]
        self._db.executemany("INSERT INTO fts (rowid, body) VALUES (?, ?)", rows)

    def finish(self) -> None:
        self._db.execute("INSERT INTO fts (fts) VALUES ('optimize')")
        self._db.execute("COMMIT")
        self._db.close()


def best(path: Path, queries: Iterable[str], most: int) -> list[Best]:
    """The best records of each query: a field that holds all its words, the best one counting."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return [_best(db, query, most) for query in queries]


def _best(db: sqlite3.Connection, query: str, most: int) -> Best:
    words = " AND ".join(f'"{word}"' for word in fold(query).split())
    rows = db.execute(
        "SELECT rowid >> 1, bm25(fts) AS score FROM fts WHERE fts MATCH ? ORDER BY score LIMIT ?",
        (words, DEEPEST),
    )
    scores: dict[int, float] = {}
    for number, score in rows:
        scores.setdefault(number, score)
    ranked = list(scores.items())
    top = ranked[:most]
    last = top[-1][1] if top else 0.0
    tied = [number for number, score in ranked if abs(score - last) < NEARLY]
    return Best(tuple(_ids(db, (n for n, _ in top))), frozenset(_ids(db, tied)))


def _ids(db: sqlite3.Connection, numbers: Iterable[int]) -> list[str]:
    found = (db.execute("SELECT id FROM handle WHERE number = ?", (n,)).fetchone() for n in numbers)
    return [row[0] for row in found]
