"""The file every peer reads, and the search they all serve: one statement, exact bm25, snippets.

It is what the documentation of FTS5 leads to. Standard library only.
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
DATABASE = "BENCH_PLAIN_DB"
MMAP_BYTES = 1 << 30

COLUMNS = "r.id, r.source, r.stream, r.title, r.sent_at, snippet(fts, 1, '', '', '…', 48)"
SEARCH = (
    f"SELECT {COLUMNS} FROM fts JOIN record r ON r.seq = fts.rowid "
    "WHERE fts MATCH ? ORDER BY rank LIMIT ?"
)
JOINED = (
    f"SELECT {COLUMNS} FROM fts JOIN record r ON r.seq = fts.rowid "
    "WHERE fts MATCH ? AND r.source IN (SELECT value FROM json_each(?)) ORDER BY rank LIMIT ?"
)

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
    """The best hits, each with a snippet."""
    rows = connection().execute(SEARCH, (expression(query), limit))
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
