"""Posts of both eras, as a well-behaved client sends them. Tests change one thing at a time."""

from typing import Any

import orjson
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
JSON = {"Content-Type": "application/json"}

#: Omits a key or a header.
ABSENT: Any = object()


def legacy_body(method: str, params: Any = None, *, id: Any = 1) -> dict[str, Any]:
    """A JSON-RPC request; a notification when `id` is `ABSENT`."""
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
    return present(body)


def modern_body(
    method: str, params: dict[str, Any] | None = None, *, version: Any = MODERN, id: Any = 1
) -> dict[str, Any]:
    """The same request with the claims of a modern one."""
    claims = {f"{PREFIX}protocolVersion": version, f"{PREFIX}clientCapabilities": {}}
    return legacy_body(method, {**(params or {}), "_meta": present(claims)}, id=id)


def modern_headers(body: dict[str, Any], **changed: Any) -> dict[str, str]:
    """The headers that match a modern body, except for those in `changed` (`Mcp_Name=…`)."""
    params = body.get("params", {})
    headers = {
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": body.get("method", ABSENT),
        "Mcp-Name": params.get("name", params.get("uri", ABSENT)),
        **{key.replace("_", "-"): value for key, value in changed.items()},
    }
    return present(headers)


def present(mapping: dict[str, Any]) -> dict[str, Any]:
    """The mapping without `ABSENT` values."""
    return {key: value for key, value in mapping.items() if value is not ABSENT}


class Poster:
    """Posts to one address of the application under test."""

    def __init__(self, client: FlaskClient, path: str = "/mcp") -> None:
        self.client = client
        self.path = path

    def raw(self, data: bytes, headers: dict[str, str] | None = None) -> TestResponse:
        """Posts any bytes, as JSON unless the headers set another type."""
        return self.client.post(self.path, data=data, headers={**JSON, **(headers or {})})

    def json(self, message: Any, headers: dict[str, str] | None = None) -> TestResponse:
        """Posts any JSON value."""
        return self.raw(orjson.dumps(message), headers)

    def modern(self, method: str, params: Any = None, **headers: Any) -> TestResponse:
        """Posts a modern request. `headers` replace the usual ones; `ABSENT` removes one."""
        body = modern_body(method, params)
        return self.json(body, modern_headers(body, **headers))

    def legacy(
        self, method: str, params: Any = None, *, version: str | None = LEGACY[0]
    ) -> TestResponse:
        """Posts a legacy request; without a version header when `version` is None."""
        headers = {"MCP-Protocol-Version": version} if version is not None else {}
        return self.json(legacy_body(method, params), headers)


def error_of(response: TestResponse, status: int, code: int) -> dict[str, Any]:
    """The JSON-RPC error of a response, which must have this status and code."""
    assert response.status_code == status, response.data
    assert response.content_type == "application/json"
    body = orjson.loads(response.data)
    assert body["jsonrpc"] == "2.0" and "id" in body and "result" not in body
    error: dict[str, Any] = {**body["error"], "id": body["id"]}
    assert error["code"] == code, error
    return error


def result_of(response: TestResponse) -> dict[str, Any]:
    """The JSON-RPC result of a response that must be a success."""
    assert response.status_code == 200, response.data
    assert response.content_type == "application/json"
    body = orjson.loads(response.data)
    assert "error" not in body, body
    result: dict[str, Any] = body["result"]
    return result
