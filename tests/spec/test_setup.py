"""How a client is set up: one way first, no profiles, and what is written works."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import click
import pytest
from click.testing import CliRunner, Result

from service.__main__ import rung
from service.clients.table import CLIENTS, PLACEHOLDER, RECOMMENDED, client_of
from service.clients.servers import server as entry_of
from service.settings import SETTINGS
from tests.helpers.server import serving
from tests.spec.scenarios import scenario

ROOT = Path(__file__).parents[2]
SELECTORS = re.compile(r"--[a-z-]*(profile|toolset)|\b[A-Z_]*(PROFILE|TOOLSET)")
#: What a recommended setup does not mention.
ADVANCED = re.compile(r"profile|toolset|subscri|owner|developer|control.plane", re.I)
TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
OVER_HTTP = ("claude-code", "cursor", "vscode", "codex", "gemini")


@pytest.fixture(scope="module")
def server(demo_store: tuple[Path, str]) -> Iterator[str]:
    with serving("wsgi:app", {"RUNG_STORE": str(demo_store[0]), "RUNG_UPSTREAM_URL": ""}) as base:
        yield base


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA", "RUNG_URL", "RUNG_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def connect(*arguments: str) -> Result:
    return CliRunner().invoke(rung, ["connect", *arguments])


def written(home: Path, client: str) -> Any:
    """The server's entry in the file of a client."""
    config = client_of(client).config
    assert config is not None
    text = config.location.path("linux", home, {}).read_text()
    return entry_of(config, text, "rung")


def tools(url: str, headers: dict[str, str]) -> list[str]:
    content = {"Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(LIST).encode(), content | headers)) as answer:
        return [tool["name"] for tool in json.load(answer)["result"]["tools"]]


def commands(group: click.Command, name: str = "rung") -> Iterator[tuple[str, click.Command]]:
    yield name, group
    for word, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{name} {word}")


def shows_one_way_first(page: str, url: str) -> None:
    """Whether address and header come before any client, without advanced options."""
    header = page.index("Authorization: Bearer")
    first = min(page.index(title) for title in (each.title for each in CLIENTS[:-1]))
    assert page.index(url) < header < first
    assert page.index(RECOMMENDED.snippets(url, "")[0].text) < first
    assert not ADVANCED.search(page[:first]), ADVANCED.search(page[:first])


@scenario("004/setup/one-recommended-path")
def test_the_command_shows_one_way_before_it_names_clients(home: Path) -> None:
    url = "https://rung.example.com/mcp"
    said = connect(url)
    assert said.exit_code == 0 and PLACEHOLDER in said.stdout
    shows_one_way_first(said.stdout, url)
    for client in CLIENTS:
        assert f"  {client.name} " in said.stdout


@scenario("004/setup/one-recommended-path")
def test_the_page_shows_one_way_before_it_shows_clients(server: str) -> None:
    with urlopen(f"{server}/connect") as answer:
        html = answer.read().decode()
    main = html[html.index("<main") :]
    shows_one_way_first(unescape(TAGS.sub("", main)), f"{server}/mcp")
    for client in CLIENTS:
        assert client.title in main and f'id="{client.name}"' in main


@scenario("004/setup/one-recommended-path")
def test_no_option_variable_or_page_selects_a_profile(server: str) -> None:
    for name, command in commands(rung):
        context = click.Context(command, info_name=name)
        options = [each for param in command.params for each in (*param.opts, str(param.envvar))]
        assert not SELECTORS.search(" ".join(options)), name
        assert not SELECTORS.search(command.get_help(context)), name
    assert not [each.variable for each in SETTINGS if SELECTORS.search(each.variable)]
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        assert not SELECTORS.search(page.read_text(encoding="utf-8")), page
    for path in ("/connect", "/try"):
        with urlopen(Request(server + path, headers={"Accept": "text/html"})) as answer:
            assert not re.search("profile|toolset", answer.read().decode(), re.I), path


@pytest.mark.parametrize("client", OVER_HTTP)
def test_what_is_written_is_answered_where_the_token_is_put_in(
    client: str, server: str, demo_store: tuple[Path, str], home: Path
) -> None:
    token = demo_store[1]
    (home / "token").write_text(token)
    (home / "token").chmod(0o600)
    said = connect(server, "--client", client, "--token-file", "token")
    assert said.exit_code == 0 and "Warning" not in said.stderr
    entry = written(home, client)
    if "bearer_token_env_var" in entry:
        assert entry["bearer_token_env_var"] == "RUNG_TOKEN"
        headers = {"Authorization": f"Bearer {token}"}
    else:
        headers = {
            name: re.sub(r"\$(\{[\w:-]+\}|\w+)", token, value)
            for name, value in entry["headers"].items()
        }
    url = entry.get("httpUrl") or entry["url"]
    assert "search" in tools(url, headers)
    with pytest.raises(HTTPError):
        tools(url, {})


def test_the_token_that_is_written_in_is_answered(
    server: str, demo_store: tuple[Path, str], home: Path
) -> None:
    for client in OVER_HTTP:
        connect(server, "--client", client, "--inline-token", "--token", demo_store[1])
        entry = written(home, client)
        headers = entry.get("headers") or entry["http_headers"]
        assert "search" in tools(entry.get("httpUrl") or entry["url"], headers)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["claude", *OVER_HTTP])
def test_a_client_that_starts_the_server_itself_is_answered(
    client: str, demo_store: tuple[Path, str], home: Path
) -> None:
    store, token = demo_store
    where = ("--stdio", "--store", str(store))
    said = connect(*where, "--client", client, "--inline-token", "--token", token)
    assert said.exit_code == 0, said.output
    entry = written(home, client)
    answered = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps(LIST).encode() + b"\n",
        env={"PATH": os.environ["PATH"], **entry["env"]},
        cwd=ROOT if "-m" in entry["args"] else home,
        capture_output=True,
        check=True,
    )
    assert "search" in [tool["name"] for tool in json.loads(answered.stdout)["result"]["tools"]]


def test_a_token_file_is_named_and_not_copied_where_the_server_is_started(
    demo_store: tuple[Path, str], home: Path
) -> None:
    (home / "token").write_text(demo_store[1])
    connect("--stdio", "--client", "claude", "--token-file", "token", "--store", "rung.db")
    entry = written(home, "claude")
    assert entry["args"][-4:] == ["--store", f"{home}/rung.db", "--token-file", f"{home}/token"]
    assert "env" not in entry and demo_store[1] not in str(entry)


def test_the_command_of_curl_is_answered(server: str, demo_store: tuple[Path, str]) -> None:
    (snippet,) = client_of("curl").snippets(f"{server}/mcp", demo_store[1])
    words = shlex.split(snippet.text)
    headers = [words[at + 1] for at, word in enumerate(words) if word == "-H"]
    assert words[:2] == ["curl", "-s"] and json.loads(words[words.index("-d") + 1]) == LIST
    assert "search" in tools(words[2], dict(line.split(": ", 1) for line in headers))


@pytest.mark.parametrize(
    ("path", "token", "problem"),
    [
        ("/mcp", "rung_not-a-token-of-this-server", "refused this token with status 401"),
        ("/elsewhere", "", "no MCP endpoint"),
        ("/mcp/papers", "", "no MCP endpoint"),
    ],
)
def test_what_would_not_work_is_said_before_it_is_written(
    path: str, token: str, problem: str, server: str, home: Path
) -> None:
    said = connect(server + path, "--client", "cursor", "--token", token)
    assert said.exit_code == 1 and not list(home.rglob("mcp.json"))
    assert problem in said.stderr and "rung doctor" in said.stderr
    assert not token or token not in said.output
