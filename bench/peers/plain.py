"""The file that every peer reads, and the searches that the peers serve.

Needs only the standard library and our stop words. A search matches any word of the question except
stop words, by their stems. `search` is one statement with bm25 and snippets, as the documentation
of FTS5 suggests. `two_steps`, for the limit endpoint, ranks first and then reads the ten rows, with
a plain window around a word.
"""

import os
import sqlite3
import threading
from typing import Any

from evidence.language import stop_words

TABLES = """
CREATE TABLE record (
  seq INTEGER PRIMARY KEY, id TEXT, source TEXT, stream TEXT, title TEXT, body TEXT, sent_at TEXT);
CREATE VIRTUAL TABLE fts USING fts5(
  title, body, content='record', content_rowid='seq', columnsize=1, tokenize='porter');
"""
DATABASE, DROPPED = "BENCH_PLAIN_DB", "BENCH_STOP_WORDS"
#: The words of a question that no peer searches for, as Rung does not either.
STOP_WORDS = os.environ.get(DROPPED, " ".join(sorted(stop_words("en"))))
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
_dropped = frozenset(STOP_WORDS.split())


def connect(path: str) -> sqlite3.Connection:
    """A read-only connection."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
    db.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
    return db


def connection() -> sqlite3.Connection:
    """The connection of this thread, kept open."""
    if not hasattr(_local, "db"):
        _local.db = connect(os.environ[DATABASE])
    found: sqlite3.Connection = _local.db
    return found


def words_of(query: str) -> list[str]:
    """The words to search for."""
    return [word for word in query.split() if word not in _dropped]


def expression(query: str) -> str:
    """An FTS5 expression that matches any word of a query."""
    return " OR ".join(f'"{word}"' for word in words_of(query))


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


def two_steps(db: sqlite3.Connection, query: str, limit: int) -> list[dict[str, Any]]:
    """The best hits, each with a window around the first word of the query that it contains."""
    words = words_of(query)
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
