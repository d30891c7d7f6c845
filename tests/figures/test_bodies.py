"""Thousands of JSON-RPC bodies, each a good message with something wrong in it."""

import random
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tests.helpers.api import Api
from tests.helpers.posting import JSON, LEGACY, MODERN, PREFIX
from tests.helpers.scale import times
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import House

LIBRARY = {"RUNG_PAPERS_DB": str(DATA / "papers" / "snapshot.db")}
METHODS = (
    *("initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read"),
    *("resources/templates/list", "prompts/list", "logging/setLevel", "notifications/initialized"),
)
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**53, 2**70, 1.5, 1e308, "", " ", "a" * 2_000, "\u0000", "\u202e"),
    *("%2e%2e%2f", "*", '"', "NEAR(", "💡", [], {}, [[]], [None], {"": None}, {"$ref": "#"}),
)


def message(draw: random.Random, tools: list[dict[str, Any]], era: str) -> Any:
    """A message of the era, changed in up to three places."""
    method = draw.choice(METHODS)
    params: dict[str, Any] = {}
    if method == "tools/call":
        tool = draw.choice(tools)
        known = tool["inputSchema"]["properties"]
        names = draw.sample(sorted(known), draw.randrange(len(known) + 1))
        params = {"name": tool["name"], "arguments": {name: draw.choice(ODD) for name in names}}
        params["arguments"] |= {"query": "lantern"} if draw.random() < 0.5 else {}
    elif method == "resources/read":
        params = {"uri": draw.choice(["pdpp://record/x", "doc://a/../b", *map(str, ODD)])}
    if era == MODERN:
        params["_meta"] = {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": {}}
    body: Any = {"jsonrpc": "2.0", "id": draw.randrange(99), "method": method, "params": params}
    for _ in range(draw.randrange(4)):
        place = draw.choice([body, params, params.get("arguments", body)])
        if isinstance(place, dict) and place:
            key = draw.choice(sorted(place))
            if draw.random() < 0.3:
                place.pop(key)
            else:
                place[key] = draw.choice(ODD)
    return body if draw.random() < 0.95 else [body] * draw.randrange(3)


@pytest.mark.parametrize("era", [LEGACY[0], MODERN])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/papers"])
def test_generated_bodies_are_answered(
    small_house: House, path: str, era: str, record_property: Callable[[str, object], None]
) -> None:
    api = Api(small_house.application(**LIBRARY), small_house.grant()[1])
    draw, count = random.Random(f"{path} {era}"), times(10_000, 300)
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {**JSON, "MCP-Protocol-Version": LEGACY[0]}
    tools = api.send("POST", path, orjson.dumps(listing), headers).body["result"]["tools"]
    for _ in range(count):
        sent = message(draw, tools, era)
        try:
            body = orjson.dumps(sent)
        except orjson.JSONEncodeError:  # an integer beyond 64 bits
            body = repr(sent).encode()
        claimed = {**JSON, "MCP-Protocol-Version": era}
        if era == MODERN and isinstance(sent, dict):
            name = sent.get("params")
            name = name.get("name", name.get("uri")) if isinstance(name, dict) else None
            claimed |= {"Mcp-Method": str(sent.get("method")), "Mcp-Name": str(name)}
        claimed = {key: value for key, value in claimed.items() if value.isprintable()}
        claimed = {key: value for key, value in claimed.items() if value.isascii()}
        answer = api.send("POST", path, body, claimed)
        assert answer.status < 500, (sent, answer)
        assert b"-32603" not in orjson.dumps(answer.body or None), (sent, answer)
    record_property("bodies", count)
