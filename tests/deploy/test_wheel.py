"""From the built files alone, in empty environments: a demo, a connected client, a first answer."""

import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from publish import bundle
from publish.build import build, compiled_wheel
from publish.identity import Identity
from tests.helpers.server import UNWANTED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

#: The oldest and the newest Python that Rung promises to run on.
PYTHONS = ("3.11", "3.13")
EXTRAS = "semantic,postgres,documents"
QUESTION = "what did I promise Noor"
ROW = '{"id": "1", "title": "Boiler", "text": "The boiler man comes on Thursday."}\n'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel."""
    return build(Identity.read(), tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module", params=PYTHONS)
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an empty environment."""
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"Python {request.param} is not installed")
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    return folder / "bin"


def interpreter(version: str) -> str | None:
    """A Python of a version: one of pyenv, or the one on the path."""
    with suppress(OSError):
        prefix = subprocess.run(["pyenv", "prefix", version], capture_output=True, text=True)
        if prefix.returncode == 0:
            return f"{prefix.stdout.strip()}/bin/python{version}"
    return shutil.which(f"python{version}")


@pytest.fixture(scope="module")
def rung(environment: Path, built: tuple[Path, Path]) -> Path:
    """The command, installed from the wheel."""
    subprocess.run([environment / "pip", "install", "-q", str(built[1])], check=True)
    return environment / "rung"


@pytest.fixture(scope="module")
def home(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder to work in."""
    return tmp_path_factory.mktemp("home")


def environ(home: Path) -> dict[str, str]:
    kept = {key: one for key, one in os.environ.items() if not key.startswith(UNWANTED)}
    homes = {"HOME": str(home), "XDG_DATA_HOME": str(home / ".local/share")}
    return {**kept, **homes, "PYTHONPATH": "", "PYENV_VERSION": "system"}


def run(command: Path, home: Path, *words: str) -> str:
    done = subprocess.run(
        [command, *words], cwd=home, env=environ(home), capture_output=True, text=True
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


def test_two_builds_are_equal_to_the_byte(built: tuple[Path, Path], tmp_path: Path) -> None:
    again = build(Identity.read(), tmp_path)
    assert [path.name for path in again] == [path.name for path in built]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


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


def test_the_extras_of_the_wheel_install_what_their_code_imports(
    rung: Path, environment: Path, built: tuple[Path, Path], home: Path
) -> None:
    pip, python = environment / "pip", environment / "python"
    run(pip, home, "install", "-q", f"{built[1]}[{EXTRAS}]")
    run(
        python,
        home,
        "-c",
        "import onnxruntime, olefile, sentencepiece, psycopg_pool, pypdf, striprtf",
    )
    run(pip, home, "check")


def test_the_sdist_installs_the_same_command(
    environment: Path, built: tuple[Path, Path], home: Path
) -> None:
    run(environment / "pip", home, "install", "-q", "--force-reinstall", "--no-deps", str(built[0]))
    assert run(environment / "rung", home, "--version").strip().endswith(Identity.read().version)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with the compiled scorer."""
    return compiled_wheel(Identity.read(), tmp_path_factory.mktemp("linux"))


def test_two_compiled_wheels_are_equal_to_the_byte(compiled: Path, tmp_path: Path) -> None:
    assert compiled_wheel(Identity.read(), tmp_path).read_bytes() == compiled.read_bytes()


def test_the_compiled_wheel_brings_the_scorer_to_each_python(
    environment: Path, compiled: Path, home: Path
) -> None:
    run(environment / "pip", home, "install", "-q", "--force-reinstall", "--no-deps", str(compiled))
    run(environment / "python", home, "-c", "from service.records.sqlite import scorer")


def test_without_a_compiler_there_is_no_compiled_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(RuntimeError, match="auditwheel"):
        compiled_wheel(Identity.read(), tmp_path)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with uv and pipx."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([folder / "bin/pip", "install", "-q", "uv", "pipx"], check=True)
    return folder / "bin"


def test_uvx_runs_the_demo_from_the_wheel(
    tools: Path, built: tuple[Path, Path], tmp_path: Path
) -> None:
    run(
        tools / "uvx", tmp_path, "--python", sys.executable, "--from", str(built[1]), "rung", "demo"
    )
    assert (tmp_path / "var/demo-token").is_file()


def test_the_bundle_starts_a_server_for_the_store_and_the_token_a_person_gives(
    tools: Path, built: tuple[Path, Path], tmp_path: Path
) -> None:
    command = ("--python", sys.executable, "--from", str(built[1]), "rung")
    run(tools / "uvx", tmp_path, *command, "demo")
    with zipfile.ZipFile(bundle.pack(Identity.read(), built[1], tmp_path)) as packed:
        packed.extractall(tmp_path / "unpacked")
    manifest = json.loads((tmp_path / "unpacked/manifest.json").read_text())
    text = json.dumps(manifest["server"]["mcp_config"])
    for name, value in (
        ("__dirname", tmp_path / "unpacked"),
        ("user_config.store", tmp_path / "var/rung.db"),
        ("user_config.token", (tmp_path / "var/demo-token").read_text().strip()),
    ):
        text = text.replace(f"${{{name}}}", str(value))
    config = json.loads(text)
    call = {"name": "search", "arguments": {"query": QUESTION}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    done = subprocess.run(
        [tools / config["command"], *config["args"]],
        env={**environ(tmp_path), **config["env"]},
        input=json.dumps(message) + "\n",
        capture_output=True,
        text=True,
    )
    assert "a speech of five minutes in Dutch" in done.stdout, done.stderr


def test_pipx_installs_the_wheel(tools: Path, built: tuple[Path, Path], tmp_path: Path) -> None:
    run(tools / "pipx", tmp_path, "install", "--python", sys.executable, str(built[1]))
    assert Identity.read().version in run(tmp_path / ".local/bin/rung", tmp_path, "--version")
