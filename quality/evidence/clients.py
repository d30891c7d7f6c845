"""Minimal MCP clients: over HTTP, and over the standard input and output of a process."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import requests

_VERSION = "2025-06-18"
_HELLO = {
    "protocolVersion": _VERSION,
    "capabilities": {},
    "clientInfo": {"name": "evidence-benchmark", "version": "1"},
}
_SECONDS = 120


class Client:
    """A session with a server. `server` is what it calls itself, and its version."""

    def __init__(self) -> None:
        self._last = 0
        try:
            self.server: dict[str, str] = self.request("initialize", _HELLO)["serverInfo"]
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except BaseException:
            self.close()
            raise

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request. Raises `RuntimeError` for a JSON-RPC error."""
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        answer = self._send(message)
        if "result" not in answer:
            raise RuntimeError(f"{method} failed: {json.dumps(answer)[:500]}")
        result: dict[str, Any] = answer["result"]
        return result

    def _send(self, message: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def close(self) -> None:
        """Ends the session."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Http(Client):
    """Streamable HTTP. Answers are JSON or one event of a stream."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url, self._session = url, requests.Session()
        self._session.headers["Accept"] = "application/json, text/event-stream"
        self._session.headers["MCP-Protocol-Version"] = _VERSION
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"
        super().__init__()

    def _send(self, message: dict[str, Any]) -> dict[str, Any]:
        response = self._session.post(self._url, json=message, timeout=_SECONDS)
        if id := response.headers.get("Mcp-Session-Id"):
            self._session.headers["Mcp-Session-Id"] = id
        if not response.ok:
            raise RuntimeError(f"HTTP {response.status_code}: {response.text[:500]}")
        if "text/event-stream" in response.headers.get("Content-Type", ""):
            lines = response.content.decode().splitlines()
            events = (json.loads(line[5:]) for line in lines if line.startswith("data:"))
            return next(event for event in events if event.get("id") == message["id"])
        return dict(response.json()) if response.content else {}

    def close(self) -> None:
        self._session.close()


class Stdio(Client):
    """A server that this process starts; `env` is added to its environment."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        environment = {**os.environ, **env}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        super().__init__()

    def _send(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        if "id" not in message:
            return {}
        for line in self._process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == message["id"]:
                return answer
        raise RuntimeError("The server ended.")

    def close(self) -> None:
        self._process.communicate()
