"""Requests as bytes, for both eras of the protocol, and the results of calls."""

from typing import Any

import orjson

from bench.load import NAMED, post

MODERN, LEGACY = "2026-07-28", "2025-06-18"
#: MCP clients must accept both; some servers enforce it.
ACCEPT = "application/json, text/event-stream"

_PREFIX = "io.modelcontextprotocol/"


def call(
    token: str | None,
    tool: str,
    arguments: dict[str, Any],
    *,
    path: str = "/mcp",
    era: str = LEGACY,
) -> bytes:
    """A tools/call request. `token` None sends no Authorization header."""
    params = {"name": tool, "arguments": arguments}
    return request(token, "tools/call", params, path=path, era=era)


def request(
    token: str | None,
    method: str,
    params: dict[str, Any],
    *,
    path: str = "/mcp",
    era: str = LEGACY,
) -> bytes:
    """A request with the headers and the body that its era requires."""
    headers = {"MCP-Protocol-Version": era, "Accept": ACCEPT}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if era == MODERN:
        headers |= {"Mcp-Method": method}
        headers |= {"Mcp-Name": params["name"]} if "name" in params else {}
        claims = {f"{_PREFIX}protocolVersion": era, f"{_PREFIX}clientCapabilities": {}}
        params = {**params, "_meta": claims}
    return post(path, message(method, params), headers)


def get(target: str, token: str | None = None) -> bytes:
    """A GET request as it goes over the wire. `token` None sends no Authorization header."""
    lines = [f"GET {target} HTTP/1.1", f"Host: {NAMED}"]
    lines += [] if token is None else [f"Authorization: Bearer {token}"]
    return "\r\n".join([*lines, "", ""]).encode()


def message(method: str, params: dict[str, Any]) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def result_of(answer: bytes) -> dict[str, Any]:
    """The result of a call. Raises `RuntimeError` if the call failed."""
    result: dict[str, Any] = orjson.loads(answer)["result"]
    if result.get("isError"):
        raise RuntimeError(f"a call failed: {result['content']}")
    return result


def ids_of(answer: bytes) -> list[str]:
    """The ids of the hits of a search."""
    return [hit["id"] for hit in result_of(answer)["structuredContent"]["results"]]
