"""From the wheel alone, in an empty environment: a demo, a connected client, a first answer."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from tests.helpers.server import ROOT, UNWANTED

pytestmark = pytest.mark.slow

SOURCES = ("evidence", "renderers", "service")
FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")
QUESTION = "what did I promise Noor"
ROW = '{"id": "1", "title": "Boiler", "text": "The boiler man comes on Thursday."}\n'


@pytest.fixture(scope="module")
def rung(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command, installed from the wheel into an environment of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        shutil.copytree(ROOT / name, folder / "source" / name)
    for name in FILES:
        shutil.copy(ROOT / name, folder / "source")
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps")
    subprocess.run([*pip, "-w", str(folder), str(folder / "source")], check=True)
    shutil.rmtree(folder / "source")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([folder / "venv/bin/pip", "install", "-q", str(wheel)], check=True)
    return folder / "venv/bin/rung"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder to work in."""
    return tmp_path_factory.mktemp("home")


def environ(home: Path) -> dict[str, str]:
    kept = {key: one for key, one in os.environ.items() if not key.startswith(UNWANTED)}
    return {**kept, "HOME": str(home), "PYTHONPATH": ""}


def run(rung: Path, home: Path, *words: str) -> str:
    done = subprocess.run(
        [rung, *words], cwd=home, env=environ(home), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def base(rung: Path, home: Path) -> Iterator[str]:
    """The served demo."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [rung, "demo", "--serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=home, env=environ(home), stdout=-3, stderr=-3) as server:
        url = f"http://127.0.0.1:{port}"
        with requests.Session() as asking:  # until the server listens
            asking.mount(url, HTTPAdapter(max_retries=Retry(connect=12, backoff_factor=0.1)))
            assert asking.get(f"{url}/readyz").ok
        yield url
        server.terminate()


def test_a_client_is_connected_and_answers_a_question(rung: Path, home: Path, base: str) -> None:
    given = ("--client", "cursor", "--config", "mcp.json", "--inline-token")
    run(rung, home, "connect", base, *given, "--token-file", "var/demo-token")
    server = json.loads((home / "mcp.json").read_text())["mcpServers"]["rung"]
    call = {"name": "search", "arguments": {"query": QUESTION}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = requests.post(server["url"], json=message, headers=server["headers"])
    assert "a speech of five minutes in Dutch" in answer.text


def test_a_first_question_to_ones_own_records_is_answered(rung: Path, home: Path) -> None:
    (home / "notes.ndjson").write_text(ROW)
    run(rung, home, "import", "notes.ndjson", "--connection", "diary", "--store", "own.db")
    made = ("--connection", "diary", "--label", "me", "--store", "own.db")
    token = next(
        word for word in run(rung, home, "grant", "create", *made).split() if word[:5] == "rung_"
    )
    (home / "token").write_text(token)
    asked = ("search", "when does the boiler man come", "--store", "own.db")
    assert "Thursday" in run(rung, home, *asked, "--token-file", "token")
