"""Each client is told in the words of its vendor, and what it cannot do is said."""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson
import pytest

from service.clients.table import (
    CLIENTS,
    PLACEHOLDER,
    RECOMMENDED,
    FileLocation,
    install_link,
    client_of,
)

URL = "https://rung.example.com/mcp"
TOKEN = "rung_token"
BRIDGE = ["-y", "mcp-remote", URL, "--transport", "http-only"]
OVER_HTTP: dict[str, dict[str, Any]] = {
    "claude": {
        "command": "npx",
        "args": [*BRIDGE, "--header", "Authorization:${RUNG_AUTHORIZATION}"],
        "env": {"RUNG_AUTHORIZATION": "Bearer rung_token"},
    },
    "claude-code": {
        "type": "http",
        "url": URL,
        "headers": {"Authorization": "Bearer ${RUNG_TOKEN}"},
    },
    "cursor": {"url": URL, "headers": {"Authorization": "Bearer ${env:RUNG_TOKEN}"}},
    "vscode": {
        "type": "http",
        "url": URL,
        "headers": {"Authorization": "Bearer ${input:rung-token}"},
    },
    "codex": {"url": URL, "bearer_token_env_var": "RUNG_TOKEN"},
    "gemini": {"httpUrl": URL, "headers": {"Authorization": "Bearer $RUNG_TOKEN"}},
    "windsurf": {"serverUrl": URL, "headers": {"Authorization": "Bearer ${env:RUNG_TOKEN}"}},
    "zed": {"url": URL, "headers": {"Authorization": "Bearer rung_token"}},
    "cline": {
        "type": "streamableHttp",
        "url": URL,
        "headers": {"Authorization": "Bearer rung_token"},
    },
    "lm-studio": {"url": URL, "headers": {"Authorization": "Bearer rung_token"}},
}
STARTED: dict[str, dict[str, Any]] = {
    "claude": {"env": {"RUNG_TOKEN": TOKEN}},
    "claude-code": {"type": "stdio", "env": {"RUNG_TOKEN": "${RUNG_TOKEN}"}},
    "cursor": {"env": {"RUNG_TOKEN": "${env:RUNG_TOKEN}"}},
    "vscode": {"type": "stdio", "env": {"RUNG_TOKEN": "${input:rung-token}"}},
    "codex": {"env_vars": ["RUNG_TOKEN"]},
    "gemini": {"env": {"RUNG_TOKEN": "$RUNG_TOKEN"}},
    "windsurf": {"env": {"RUNG_TOKEN": "${env:RUNG_TOKEN}"}},
    "zed": {"env": {"RUNG_TOKEN": TOKEN}},
    "cline": {"env": {"RUNG_TOKEN": TOKEN}},
    "lm-studio": {"env": {"RUNG_TOKEN": TOKEN}},
}


@pytest.mark.parametrize("name", OVER_HTTP)
def test_a_server_is_spelled_as_the_client_reads_it(name: str) -> None:
    config = client_of(name).config
    assert config is not None
    bearer = config.credential(TOKEN, "rung")
    assert config.http(URL, bearer) == OVER_HTTP[name]
    command = {"command": "/bin/rung", "args": ["stdio"]}
    assert config.stdio(["/bin/rung", "stdio"], bearer) == command | STARTED[name]
    nothing = config.credential("", "rung")
    assert "uthorization" not in str(config.http(URL, nothing))
    assert config.stdio(["/bin/rung", "stdio"], nothing).keys() <= {"type", *command}


def test_every_client_that_has_a_file_is_in_these_tables() -> None:
    assert OVER_HTTP.keys() == STARTED.keys() == {one.name for one in CLIENTS if one.config}


@pytest.mark.parametrize("token", ["", TOKEN])
def test_a_link_has_the_server_in_the_form_of_its_client_and_no_token(token: str) -> None:
    cursor = urlsplit(install_link(client_of("cursor"), URL, token))
    assert (cursor.scheme, cursor.netloc) == ("cursor", "anysphere.cursor-deeplink")
    assert cursor.path == "/mcp/install"
    query = dict(parse_qsl(cursor.query, strict_parsing=True))
    entry = orjson.loads(base64.b64decode(query["config"], validate=True))
    assert query["name"] == "rung" and entry["url"] == URL
    vscode = install_link(client_of("vscode"), URL, token)
    assert vscode.startswith("vscode:mcp/install?")
    server = orjson.loads(unquote(vscode.partition("?")[2]))
    assert (server["name"], server["type"], server["url"]) == ("rung", "http", URL)
    if token:
        assert entry == OVER_HTTP["cursor"]
        assert server["headers"] == OVER_HTTP["vscode"]["headers"]
        assert server["inputs"][0]["id"] == "rung-token" and server["inputs"][0]["password"]
    assert {"inputs", "headers"} <= server.keys() if token else "headers" not in {*server, *entry}
    assert TOKEN not in str(entry) + str(server)
    assert install_link(client_of("zed"), URL, token) == ""


def test_plain_http_beyond_this_machine_is_allowed_to_the_bridge_by_name() -> None:
    for url, allowed in (
        ("http://10.0.0.5/mcp", True),
        ("http://127.example.com/mcp", True),
        ("http://127.0.0.1:8000/mcp", False),
    ):
        (snippet,) = client_of("mcp-remote").snippets(url, "")
        assert ("--allow-http" in snippet.text) == allowed


@pytest.mark.parametrize("client", [RECOMMENDED, *CLIENTS], ids=lambda client: client.name)
def test_a_snippet_holds_the_address_and_the_token_where_one_is_needed(client: Any) -> None:
    open_ones, closed = client.snippets(URL, ""), client.snippets(URL, TOKEN)
    assert any(URL in one.text for one in open_ones)
    assert not any(word in str(open_ones) for word in ("Authorization", "TOKEN", "token"))
    prompted = client.config is not None and client.config.prompts
    assert prompted or not closed or any(TOKEN in one.text for one in closed)
    assert bool(closed) or not client.bearer
    assert client.note.endswith(".") and "\n" not in client.note


def test_a_shell_takes_a_token_that_is_not_shown_from_its_environment() -> None:
    for name in ("curl", "claude-code", "mcp-remote"):
        (snippet,) = client_of(name).snippets(URL, PLACEHOLDER)
        assert '"Authorization: Bearer $RUNG_TOKEN"' in snippet.text
        assert PLACEHOLDER not in snippet.text


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("linux", "/home/ada/.config/Code/User/mcp.json"),
        ("darwin", "/home/ada/Library/Application Support/Code/User/mcp.json"),
        ("win32", "/roaming/Code/User/mcp.json"),
        ("freebsd14", "/home/ada/.config/Code/User/mcp.json"),
    ],
)
def test_a_file_is_looked_for_where_the_system_keeps_it(system: str, expected: str) -> None:
    config = client_of("vscode").config
    assert config is not None
    where = (system, Path("/home/ada"), {"APPDATA": "/roaming"})
    assert str(config.location.path(*where)) == expected
    assert "(macOS)" in config.location.description
    moved = FileLocation("~/.codex/config.toml", variable="CODEX_HOME")
    moved_to = moved.path(system, Path("/home/ada"), {"CODEX_HOME": "/c"})
    assert str(moved_to) == "/c/config.toml"
