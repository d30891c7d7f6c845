"""Bodies nobody should send: each gets a JSON answer, and none a 5xx."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import orjson
import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.limits import BUDGETS
from tests.helpers.fixture_app import create_app
from tests.helpers.posting import JSON, LEGACY, MODERN, PREFIX, Poster, error_of, legacy_body
from tests.helpers.server import BootFailed, serving
from tests.helpers.waiting import WAIT_SECONDS

NOT_JSON = {
    "nothing": b"",
    "blank": b"   ",
    "cut off": b'{"jsonrpc":',
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
    "Infinity": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-Infinity}}',
    "a lone surrogate": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}',
    "bytes that are not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "UTF-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    "10,000 deep arrays": b"[" * 10_000 + b"]" * 10_000,
    "10,000 deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
}

methods = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "resources/read", "server/discover", "x"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
claims = st.fixed_dictionaries(
    {},
    optional={
        f"{PREFIX}protocolVersion": st.sampled_from([MODERN, *LEGACY, "v9"]) | values,
        f"{PREFIX}clientCapabilities": values,
    },
)
params = values | st.fixed_dictionaries(
    {},
    optional={
        "_meta": claims | values,
        "name": st.sampled_from(["echo", "link", "mirrored"]) | values,
        "arguments": values,
        "uri": values,
        "cursor": values,
        "protocolVersion": values,
    },
)
frames = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": st.integers(0, 9) | values,
        "method": methods | values,
        "params": params,
        "result": values,
    },
)


@pytest.fixture(scope="module")
def mcp() -> Iterator[Poster]:
    """The open surface."""
    with create_app().test_client() as client:
        yield Poster(client)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The open surface behind a real gunicorn."""
    with serving("tests.helpers.fixture_app:create_app()") as base:
        yield f"{base}/mcp"


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_not_json_is_minus_32700(mcp: Poster, body: bytes) -> None:
    assert error_of(mcp.raw(body), 400, -32700)["id"] is None


@settings(deadline=None)
@given(body=st.binary())
def test_any_bytes_get_json_and_never_a_5xx(mcp: Poster, body: bytes) -> None:
    answered(mcp, body, {})


@settings(deadline=None)
@given(
    message=frames | st.lists(frames, max_size=3),
    version=st.sampled_from([None, MODERN, *LEGACY, "v9"]),
)
def test_any_frame_gets_json_and_never_a_5xx(
    mcp: Poster, message: object, version: str | None
) -> None:
    try:
        body = orjson.dumps(message)
    except orjson.JSONEncodeError:
        body = repr(message).encode("utf-8", "replace")
    answered(mcp, body, {"MCP-Protocol-Version": version} if version else {})


def answered(mcp: Poster, body: bytes, headers: dict[str, str]) -> None:
    """Asserts that a body was answered as the protocol promises."""
    response = mcp.raw(body, headers)
    assert response.status_code in (200, 202, 400, 404), response.data
    if response.status_code == 202:
        assert response.data == b""
        return
    assert response.content_type == "application/json"
    told = orjson.loads(response.data)
    for one in told if isinstance(told, list) else [told]:
        assert one["jsonrpc"] == "2.0" and "id" in one
        assert ("result" in one) != ("error" in one)
        assert one.get("error", {}).get("code") != -32603, "a hostile body must not be our fault"


@pytest.mark.parametrize("size", [BUDGETS.body_bytes, BUDGETS.body_bytes + 1])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_size_limit_holds_for_chunked_bodies_too(url: str, size: int, chunked: bool) -> None:
    body = orjson.dumps(legacy_body("ping")).ljust(size)
    parts = (body[start : start + 65_536] for start in range(0, size, 65_536))
    response = requests.post(
        url, data=parts if chunked else body, headers=JSON, timeout=WAIT_SECONDS
    )
    assert response.status_code == (200 if size == BUDGETS.body_bytes else 413)
    assert response.headers["Content-Type"] == "application/json"
    assert response.json()["jsonrpc"] == "2.0"


def test_a_malformed_chunk_is_400(url: str) -> None:
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(
        ("127.0.0.1", urlsplit(url).port or 0), timeout=WAIT_SECONDS
    ) as peer:
        peer.sendall(head + b"Transfer-Encoding: chunked\r\n\r\nnot a size\r\n")
        assert peer.recv(64).startswith(b"HTTP/1.1 400")


def test_headers_over_a_real_server(url: str) -> None:
    notified = requests.post(
        url, json=legacy_body("notifications/initialized") | {"id": 1}, timeout=WAIT_SECONDS
    )
    assert notified.headers["Content-Type"] == "application/json"
    accepted = requests.post(
        url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, timeout=WAIT_SECONDS
    )
    assert accepted.status_code == 202 and accepted.content == b""
    assert "Content-Type" not in accepted.headers
    assert accepted.headers["Content-Length"] == "0"
    assert "Mcp-Session-Id" not in accepted.headers


def test_headers_that_come_twice_disagree_with_any_body(url: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    twice = b"MCP-Protocol-Version: 2025-06-18\r\nMCP-Protocol-Version: 2025-11-25\r\n"
    length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    with socket.create_connection(
        ("127.0.0.1", urlsplit(url).port or 0), timeout=WAIT_SECONDS
    ) as peer:
        peer.sendall(head + twice + length + body)
        assert peer.recv(64).startswith(b"HTTP/1.1 400")


def test_a_server_that_cannot_boot_says_why() -> None:
    with pytest.raises(BootFailed, match="nowhere"), serving("nowhere:app"):
        pass
