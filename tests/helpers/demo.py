"""The demo store behind a real gunicorn, as a new user would serve it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import Request, urlopen

from service.demo.fill import fill, token_for
from service.place import spelled
from service.records.opening import open_writer
from tests.helpers.places import new_place
from tests.helpers.server import serving

NEEDLE = "first lantern lit"


@contextmanager
def serving_demo() -> Iterator[tuple[str, str]]:
    """Yields (MCP URL, client token) of a served demo store."""
    with TemporaryDirectory() as folder:
        path = new_place(Path(folder))
        with open_writer(path) as writer:
            connections = fill(writer)
            token = token_for(writer, connections, Path(folder) / "token")
        config = "python:service.serving"
        with serving("wsgi:app", {"RUNG_STORE": spelled(path)}, config=config) as base:
            yield f"{base}/mcp", token


def journey(url: str, token: str) -> list[dict[str, Any]]:
    """The main task as a sequence of calls: search, open the hit at its match, fetch it."""
    found = _call(url, token, "search", {"query": NEEDLE})
    rung = found["structuredContent"]["content_ladder"]["records"][0]
    first = rung["evidence"][0]
    field = {"id": rung["id"], "field_path": first["field_path"]}
    read = first.get("read", {"tool": "read_record_field", "args": field})
    return [
        {"tool": "schema", "arguments": {}, "expect": "streams="},
        {"tool": "search", "arguments": {"query": NEEDLE}, "expect": rung["id"]},
        {"tool": read["tool"], "arguments": read["args"], "expect": "lantern"},
        {"tool": "fetch", "arguments": {"id": rung["id"]}, "expect": "lantern"},
        {"tool": "query_records", "arguments": {"stream": "notes", "limit": 2}, "expect": "notes"},
    ]


def _call(url: str, token: str, tool: str, arguments: dict[str, Any]) -> Any:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(message).encode(), headers)) as answer:
        return json.load(answer)["result"]
