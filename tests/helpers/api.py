"""A tiny client for both surfaces, over an application in this process or over a real server.

api = Api(app, token)                              # or Api("http://127.0.0.1:8000", token)
api.mcp("search", query="lantern")["structuredContent"]["results"]
status, headers, body = api.rest("/v1/streams/messages/records", filter={"size": {"gte": 9}})
"""

from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import orjson
from flask import Flask

from evidence import handles
from tests.helpers.posting import JSON, LEGACY, legacy_body
from tests.helpers.waiting import WAIT_SECONDS

#: Sent with every request, so that the same request gets the same bytes.
REQUEST_ID = "req_of_a_test"


class Answer(NamedTuple):
    """An HTTP answer. `body` is decoded if its type is JSON, otherwise it is bytes."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def error(self) -> dict[str, Any]:
        """The error object of a REST answer."""
        found: dict[str, Any] = self.body["error"]
        return found


class Api:
    """One caller. `token` None sends no Authorization header."""

    def __init__(self, app: Flask | str, token: str | None) -> None:
        self.app = app
        self.token = token

    def mcp(self, tool: str, /, **args: Any) -> dict[str, Any]:
        """The result of a tool call, also with `isError`. A JSON-RPC error fails the test."""
        return self.rpc("tools/call", {"name": tool, "arguments": args})["result"]

    def read(self, uri: str) -> dict[str, Any]:
        """`{"result": …}` or `{"error": …}` of `resources/read`."""
        return self.rpc("resources/read", {"uri": uri})

    def rpc(self, method: str, params: Any) -> dict[str, Any]:
        """The JSON-RPC message that answers a request."""
        answer = self.post(orjson.dumps(legacy_body(method, params)))
        assert answer.status == 200, answer
        return dict(answer.body)

    def post(self, body: bytes, **headers: str) -> Answer:
        """Posts any bytes to `/mcp`."""
        version = {"MCP-Protocol-Version": LEGACY[0]}
        return self.send("POST", "/mcp", body, {**JSON, **version, **headers})

    def rest(self, path: str, /, **params: Any) -> Answer:
        """Sends a GET. Lists repeat a parameter, objects become brackets."""
        query = urlencode([pair for name in params for pair in flat(name, params[name])])
        return self.get(f"{path}?{query}" if query else path)

    def get(self, target: str, **headers: str) -> Answer:
        """Sends a GET with a path and query exactly as given."""
        return self.send("GET", target, b"", headers)

    def send(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Sends any request, with the token and a fixed request id."""
        sent = {"Request-Id": REQUEST_ID, **headers}
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        status, found, raw = (
            self._over_http(self.app, method, target, body, sent)
            if isinstance(self.app, str)
            else self._in_process(self.app, method, target, body, sent)
        )
        is_json = found.get("Content-Type", "").startswith("application/json")
        return Answer(status, found, orjson.loads(raw) if is_json and raw else raw)

    @staticmethod
    def _in_process(
        app: Flask, method: str, target: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        response = app.test_client().open(target, method=method, data=body, headers=headers)
        with response:
            return response.status_code, dict(response.headers), response.get_data()

    @staticmethod
    def _over_http(
        base: str, method: str, target: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection(urlsplit(base).netloc, timeout=WAIT_SECONDS)
        try:
            connection.request(method, target, body or None, headers)
            response = connection.getresponse()
            return response.status, dict(response.headers), response.read()
        finally:
            connection.close()


def flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The REST form of a parameter: `filter[size][gte]=9`, `fields=a&fields=b`."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flat(f"{name}[{key}]", item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield name, item
    elif value is not None:
        yield name, str(value).lower() if isinstance(value, bool) else value


def path(*segments: str) -> str:
    """`/v1/streams/…` with every segment percent-encoded."""
    return "/v1/streams/" + "/".join(quote(segment, safe="") for segment in segments)


def record_path(stream: str, record_id: str, *more: str) -> str:
    """The address of a record, or of its field-window."""
    return path(stream, "records", record_id, *more)


#: The REST names of arguments that have other names in the tools.
REST_NAMES = {"query": "q", "field_path": "field"}


def route_of(tool: str, args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """(path, parameters) of the REST request that is equivalent to a tool call."""
    rest = {REST_NAMES.get(name, name): value for name, value in args.items()}
    if tool == "schema":
        return "/v1/schema", {"view": "compact", **args}
    if tool == "search":
        return "/v1/search", rest
    if tool in ("fetch", "read_record_field"):
        ref = handles.parse(rest.pop("id"), connection_id=rest.pop("connection_id", None))
        more = ("field-window",) if tool == "read_record_field" else ()
        where = {"connection_id": ref.connection_id, **rest}
        return record_path(ref.stream, ref.record_id, *more), where
    tail = {"query_records": "records", "aggregate": "aggregate"}[tool]
    return path(str(rest.pop("stream")), tail), rest
