"""The file every peer reads, and the searches they serve. Standard library only.

`NAIVE` is one statement with exact bm25 and snippets, what the documentation of FTS5 leads to.
`TWO_STEPS` ranks first and reads the ten rows then, with a plain window around a word: the limit's.
"""

import os
import sqlite3
import threading
from typing import Any

TABLES = """
CREATE TABLE record (
  seq INTEGER PRIMARY KEY, id TEXT, source TEXT, stream TEXT, title TEXT, body TEXT, sent_at TEXT);
CREATE VIRTUAL TABLE fts USING fts5(
  title, body, content='record', content_rowid='seq', columnsize=1);
"""
DATABASE, STATEMENT = "BENCH_PLAIN_DB", "BENCH_STATEMENT"
NAIVE, TWO_STEPS = "naive", "two steps"
MMAP_BYTES = 1 << 30
WINDOW_CHARS, BEFORE_CHARS = 350, 110

COLUMNS = "r.id, r.source, r.stream, r.title, r.sent_at, snippet(fts, 1, '', '', '…', 48)"
SEARCH = (
    f"SELECT {COLUMNS} FROM fts JOIN record r ON r.seq = fts.rowid "
    "WHERE fts MATCH ? ORDER BY rank LIMIT ?"
)
JOINED = (
    f"SELECT {COLUMNS} FROM fts JOIN record r ON r.seq = fts.rowid "
    "WHERE fts MATCH ? AND r.source IN (SELECT value FROM json_each(?)) ORDER BY rank LIMIT ?"
)
FIND = "SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY bm25(fts) LIMIT ?"
READ = "SELECT id, source, stream, title, body, sent_at FROM record WHERE seq = ?"

_local = threading.local()


def connect(path: str) -> sqlite3.Connection:
    """A connection to read by."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
    db.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
    return db


def connection() -> sqlite3.Connection:
    """The connection of this thread, kept open."""
    if not hasattr(_local, "db"):
        _local.db = connect(os.environ[DATABASE])
    found: sqlite3.Connection = _local.db
    return found


def expression(query: str) -> str:
    """All words of a query, quoted."""
    return " AND ".join(f'"{word}"' for word in query.split())


def search(query: str, limit: int) -> list[dict[str, Any]]:
    """The best hits, by the statement this process is told to run."""
    found = two_steps if os.environ.get(STATEMENT) == TWO_STEPS else naive
    return found(connection(), query, limit)


def naive(db: sqlite3.Connection, query: str, limit: int) -> list[dict[str, Any]]:
    """The best hits, each with a snippet."""
    rows = db.execute(SEARCH, (expression(query), limit))
    return [
        {
            "id": f"{source}/{stream}:{id}",
            "source": source,
            "stream": stream,
            "title": title,
            "at": at,
            "evidence": snippet,
        }
        for id, source, stream, title, at, snippet in rows
    ]


def two_steps(db: sqlite3.Connection, query: str, limit: int) -> list[dict[str, Any]]:
    """The best hits, each with a window around the first word of the query it finds."""
    words = query.split()
    found = db.execute(FIND, (expression(query), limit)).fetchall()
    return [_hit(db.execute(READ, rowid).fetchone(), words) for rowid in found]


def _hit(row: tuple[Any, ...], words: list[str]) -> dict[str, Any]:
    id, source, stream, title, body, sent_at = row
    lowered = body.lower()
    at = next((place for word in words if (place := lowered.find(word)) >= 0), 0)
    start = max(0, at - BEFORE_CHARS)
    return {
        "id": f"{source}/{stream}:{id}",
        "source": source,
        "stream": stream,
        "title": title,
        "at": sent_at,
        "start_chars": start,
        "total_chars": len(body),
        "evidence": body[start : start + WINDOW_CHARS],
    }
