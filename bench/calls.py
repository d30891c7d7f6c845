"""Requests as bytes, and the results of the calls they make."""

from typing import Any

import orjson

from bench.load import HOST, post

PROTOCOL = "2025-06-18"


def call(token: str | None, tool: str, arguments: dict[str, Any], *, path: str = "/mcp") -> bytes:
    """A tools/call, with a token where one is asked for."""
    headers = {"MCP-Protocol-Version": PROTOCOL}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return post(path, message("tools/call", {"name": tool, "arguments": arguments}), headers)


def get(target: str, token: str | None = None) -> bytes:
    """A GET request as it goes over the wire, with a token where one is asked for."""
    lines = [f"GET {target} HTTP/1.1", f"Host: {HOST}"]
    lines += [] if token is None else [f"Authorization: Bearer {token}"]
    return "\r\n".join([*lines, "", ""]).encode()


def message(method: str, params: dict[str, Any]) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def result_of(answer: bytes) -> dict[str, Any]:
    """The result of a call that must have gone well."""
    result: dict[str, Any] = orjson.loads(answer)["result"]
    if result.get("isError"):
        raise RuntimeError(f"a call failed: {result['content']}")
    return result
