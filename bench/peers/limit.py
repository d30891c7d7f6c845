"""The limit: the fastest honest search endpoint we can write with the same parts.

It has one full-text table, bm25 in two steps, a window per hit around the first word it finds, the
same two channels and about the same text per hit. Like a demo, it has no token, no grants, no
cursors, no proof that the window matches, no budgets and no fences.
"""

from typing import Any

import orjson
from flask import Flask, Response, request

from bench.peers import plain


def create_app() -> Flask:
    """The limit endpoint over the file named in the environment."""
    app = Flask("limit", static_folder=None)

    @app.post("/mcp")
    def call() -> Response:
        message = orjson.loads(request.get_data())
        arguments = message["params"]["arguments"]
        hits = plain.two_steps(plain.connection(), arguments["query"], arguments.get("limit", 10))
        result = {
            "content": [{"type": "text", "text": "\n".join(map(_line, hits))}],
            "structuredContent": {"results": hits},
        }
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return Response(orjson.dumps(body), mimetype="application/json")

    return app


def _line(hit: dict[str, Any]) -> str:
    return f"{hit['id']} {hit['title']} {hit['at']}\n{hit['start_chars']} {hit['evidence']}\n"
