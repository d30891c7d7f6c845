"""The limit: the fastest honest search endpoint we can write with the same parts.

One full-text table, exact bm25 in two steps, a window per hit around the first word it finds, the
same two channels and about the same text per hit. It has what a demo has: no token, no grants, no
cursors, no proof that the window matches, no budgets, no fences.
"""

import sqlite3
from typing import Any

import orjson
from flask import Flask, Response, request

from bench.peers import plain

WINDOW_CHARS = 350
BEFORE_CHARS = 110

_FIND = "SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY bm25(fts) LIMIT ?"
_READ = "SELECT id, source, stream, title, body, sent_at FROM record WHERE seq = ?"


def create_app() -> Flask:
    """The limit endpoint over the file named in the environment."""
    app = Flask("limit", static_folder=None)

    @app.post("/mcp")
    def call() -> Response:
        message = orjson.loads(request.get_data())
        arguments = message["params"]["arguments"]
        hits = search(plain.connection(), arguments["query"], arguments.get("limit", 10))
        result = {
            "content": [{"type": "text", "text": "\n".join(map(_line, hits))}],
            "structuredContent": {"results": hits},
        }
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return Response(orjson.dumps(body), mimetype="application/json")

    return app


def search(db: sqlite3.Connection, query: str, limit: int) -> list[dict[str, Any]]:
    """The best hits, each with a window around the first word of the query it finds."""
    words = query.split()
    found = db.execute(_FIND, (plain.expression(query), limit)).fetchall()
    return [_hit(db.execute(_READ, rowid).fetchone(), words) for rowid in found]


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


def _line(hit: dict[str, Any]) -> str:
    return f"{hit['id']} {hit['title']} {hit['at']}\n{hit['start_chars']} {hit['evidence']}\n"
