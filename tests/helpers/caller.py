"""A client of an application: tools over MCP, routes over REST, by test client or by socket."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.request import Request, urlopen

import orjson
from flask import Flask
from flask.testing import FlaskClient

from tests.helpers.api import Api
from tests.helpers.waiting import WAIT_SECONDS

VERSION = "2025-11-25"

#: Posts a body with headers and returns the body of the answer.
Post = Callable[[bytes, dict[str, str]], bytes]


@dataclass(frozen=True, slots=True)
class Answer:
    """A tools/call result: the text that a model sees, its structured counterpart, and the rest."""

    blocks: list[dict[str, Any]]
    structured: dict[str, Any]
    failed: bool = False
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.blocks)

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def error(self) -> dict[str, Any]:
        assert self.failed, self.text
        found: dict[str, Any] = self.structured["error"]
        return found


class Caller:
    """A caller with one token. `post` decides whether requests go over a socket."""

    def __init__(self, post: Post, token: str) -> None:
        self._post = post
        self._ids = itertools.count(1)
        self.headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "MCP-Protocol-Version": VERSION,
        }

    def rpc(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The whole JSON-RPC answer."""
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params or {}}
        found: dict[str, Any] = orjson.loads(self._post(orjson.dumps(body), self.headers))
        return found

    def result(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request that must succeed."""
        answer = self.rpc(method, params)
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    def call(self, tool: str, /, **arguments: Any) -> Answer:
        """The answer to a tool call, a success or an error."""
        found = self.result("tools/call", {"name": tool, "arguments": arguments})
        meta = found.get("_meta", {})
        return Answer(
            found["content"], found["structuredContent"], found.get("isError", False), meta
        )

    def ok(self, tool: str, /, **arguments: Any) -> Answer:
        """The answer to a tool call that must succeed."""
        answer = self.call(tool, **arguments)
        assert not answer.failed, f"{tool} {arguments}\n{answer.text}"
        return answer

    def pages(self, tool: str, /, **arguments: Any) -> Iterator[Answer]:
        """All pages of an answer, each by the cursor of the one before."""
        answer = self.ok(tool, **arguments)
        yield answer
        while cursor := answer.structured["data"].get("next_cursor"):
            answer = self.ok(tool, **arguments, cursor=cursor)
            yield answer

    def fails(self, tool: str, /, **arguments: Any) -> Answer:
        """The answer to a tool call that must fail."""
        answer = self.call(tool, **arguments)
        assert answer.failed, f"{tool} {arguments}\n{answer.text}"
        return answer

    def read(self, uri: str) -> str:
        """The text of a resource."""
        contents = self.result("resources/read", {"uri": uri})["contents"]
        assert len(contents) == 1
        text: str = contents[0]["text"]
        return text


class Local(Caller):
    """A caller of an application in this process, which can also use REST."""

    def __init__(self, app: Flask, token: str) -> None:
        self.api = Api(app, token)
        super().__init__(self._send, token)

    def _send(self, body: bytes, headers: dict[str, str]) -> bytes:
        return app_client(self.api).post("/mcp", data=body, headers=headers).data

    def get(self, target: str) -> dict[str, Any]:
        """The body of a REST answer, which must be a success."""
        answer = self.api.get(target)
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.body
        return found

    def refused(self, target: str, status: int) -> dict[str, Any]:
        """The error of a REST answer, which must have this status."""
        answer = self.api.get(target)
        assert answer.status == status, answer
        return answer.error


def app_client(api: Api) -> FlaskClient:
    """A test client of the application behind an `Api`."""
    assert isinstance(api.app, Flask)
    return api.app.test_client()


def over_http(base_url: str, token: str) -> Caller:
    """A caller of a server at an address."""

    def post(body: bytes, headers: dict[str, str]) -> bytes:
        request = Request(f"{base_url}/mcp", data=body, headers=headers, method="POST")
        with urlopen(request, timeout=WAIT_SECONDS) as response:
            found: bytes = response.read()
        return found

    return Caller(post, token)
