"""A plain server for comparison: SQLite FTS5 behind the official SDK, in a few lines.

`python -m quality.evidence.fts5 FOLDER` serves the records that `python -m quality.evidence corpus`
wrote to FOLDER. A search finds records with all words, ranked by bm25, and shows the best snippet.
"""

import json
import sqlite3
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

server = MCPServer("plain FTS5", version=f"with mcp {version('mcp')}")
database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute(
    "CREATE VIRTUAL TABLE record USING fts5("
    "title, text, id UNINDEXED, account UNINDEXED, folder UNINDEXED, sender UNINDEXED, "
    "tokenize = 'porter')"
)


@server.tool()
def search(query: str) -> dict[str, Any]:
    """Search all mail and notes. Returns the ten best records, with an excerpt of each."""
    every_word = " ".join(f'"{word}"' for word in query.replace('"', " ").split())
    rows = database.execute(
        "SELECT account || '/' || id, title, snippet(record, 1, '', '', '…', 64) FROM record "
        "WHERE record MATCH ? ORDER BY rank LIMIT 10",
        (every_word,),
    )
    return {"results": [{"id": id, "title": title, "text": text} for id, title, text in rows]}


@server.tool()
def fetch(id: str) -> dict[str, Any]:
    """Read a whole record. The id is the account, a slash, and the id of the record in it."""
    row = database.execute(
        "SELECT title, text FROM record WHERE account || '/' || id = ?", (id,)
    ).fetchone()
    if row is None:
        raise ValueError(f"There is no record {id}.")
    return {"id": id, "title": row[0], "text": row[1]}


@server.tool()
def count(account: str, folder: str | None = None, sender: str | None = None) -> int:
    """Count the records of an account, of a folder or a sender if given."""
    row = database.execute(
        "SELECT count(*) FROM record WHERE account = ? AND folder = coalesce(?, folder) "
        "AND sender = coalesce(?, sender)",
        (account, folder, sender),
    ).fetchone()
    return int(row[0])


def load(folder: Path) -> None:
    """Fills the table with the records of a folder."""
    for account in json.loads((folder / "accounts.json").read_text(encoding="utf-8")):
        with (folder / account["file"]).open(encoding="utf-8") as lines:
            rows = (json.loads(line) for line in lines)
            database.executemany(
                "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (row.get("subject") or row["title"], row["body"], row["id"])
                    + (account["label"], row["folder"], row["sender"])
                    for row in rows
                ),
            )


if __name__ == "__main__":
    load(Path(sys.argv[1]))
    server.run()
