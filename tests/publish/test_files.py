"""What registries, hosts and agents read agrees with the operations, and keeps their rules."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from publish import agents, bundle, registry
from publish.identity import Identity
from service.__main__ import rung
from service.cli.deferred import loaded
from service.operations import OPERATIONS
from tests.helpers.server import ROOT

IDENTITY = Identity.read()
OWN = Identity("io.github.someone/rung-records", "https://github.com/someone/rung", "1.2.3")
SKILL = "plugin/skills/rung/SKILL.md"


@pytest.mark.parametrize("name", agents.written(IDENTITY))
def test_the_file_is_what_make_docs_writes(name: str) -> None:
    written = agents.written(IDENTITY)[name]
    assert (ROOT / name).read_text(encoding="utf-8") == written, "run make docs"


@pytest.mark.parametrize("identity", [IDENTITY, OWN])
def test_server_json_keeps_the_rules_of_the_registry(identity: Identity) -> None:
    server = registry.server(identity)
    assert server["$schema"].endswith("/2025-12-11/server.schema.json")
    assert re.fullmatch(r"[A-Za-z0-9.-]+/[A-Za-z0-9._-]+", server["name"])
    assert 3 <= len(server["name"]) <= 200
    assert 1 <= len(server["description"]) <= 100 and 1 <= len(server["title"]) <= 100
    assert set(server["repository"]) == {"url", "source"}
    assert set(server["_meta"]) == {registry.PUBLISHER}
    for part in (server, *server["packages"]):
        assert len(part["version"]) <= 255 and re.fullmatch(r"[0-9]+(\.[0-9]+)*", part["version"])
    (package,), (remote,) = server["packages"], server["remotes"]
    assert package["registryType"] == "pypi" and package["identifier"] == identity.name
    assert package["transport"] == {"type": "stdio"} and package["runtimeHint"] == "uvx"
    for argument in package["packageArguments"]:
        if argument["type"] == "positional":
            assert argument["value"] or argument["valueHint"]
        else:
            assert argument["type"] == "named" and argument["name"].startswith("--")
    assert all(variable["name"] for variable in package["environmentVariables"])
    assert remote["type"] == "streamable-http" and remote["url"].startswith("https://")
    templates: list[tuple[str, dict[str, Any]]] = [(remote["url"], remote)]
    templates += [(header["value"], header) for header in remote["headers"]]
    for text, declared in templates:
        assert set(re.findall(r"{(\w+)}", text)) == set(declared["variables"])


def test_the_command_of_the_package_and_of_the_bundle_exists() -> None:
    (package,) = registry.server(IDENTITY)["packages"]
    words = [part.get("value") or part["name"] for part in package["packageArguments"]]
    started = bundle.manifest(IDENTITY)["server"]["mcp_config"]["args"]
    assert started[started.index("rung") + 1 :] == [*words, "${user_config.store}"]
    command = loaded(rung.commands[words[0]])
    assert words[1] in {name for parameter in command.params for name in parameter.opts}


def test_the_bundle_asks_for_what_its_command_needs_and_hides_the_token() -> None:
    manifest = bundle.manifest(IDENTITY)
    asked = manifest["user_config"]
    used = re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(manifest["server"]))
    assert set(used) == set(asked) == {"store", "token"}
    assert asked["store"]["type"] == "file" and asked["token"]["sensitive"] is True
    assert [tool["name"] for tool in manifest["tools"]] == [one.name for one in OPERATIONS]


def test_the_bundle_names_its_wheel_by_path_and_never_by_an_index() -> None:
    text = bundle.project(OWN, "rung_records-1.2.3-py3-none-any.whl")
    assert 'rung-records = { path = "rung_records-1.2.3-py3-none-any.whl" }' in text
    assert "index" not in text and "==" not in text


def test_the_skill_has_60_lines_at_most_and_a_head_that_agents_read() -> None:
    text = agents.skill()
    _, head, body = text.split("---\n", 2)
    about = dict(line.split(": ", 1) for line in head.splitlines())
    assert about["name"] == "rung" == Path(SKILL).parent.name
    assert 1 <= len(about["description"]) <= 1024
    assert len(text.splitlines()) <= 60 and body.startswith("\n# ")


def test_the_skill_names_every_tool_and_no_argument_that_does_not_exist() -> None:
    text = agents.skill()
    names = {operation.name for operation in OPERATIONS}
    arguments = {name for operation in OPERATIONS for name in operation.arguments.fields}
    words = set(re.findall(r"`([a-z_]{4,})`", text))
    assert names <= words and words <= names | arguments, words - names - arguments


@pytest.mark.slow
def test_the_official_tool_accepts_and_packs_the_bundle(tmp_path: Path) -> None:
    wheel = tmp_path / "rung-0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    packed = bundle.pack(IDENTITY, wheel, tmp_path)
    with zipfile.ZipFile(packed) as files:
        assert {"manifest.json", "pyproject.toml", "main.py", wheel.name} <= set(files.namelist())
        assert {entry.date_time[:3] for entry in files.infolist()} == {(2026, 1, 1)}
    first = packed.read_bytes()
    assert bundle.pack(IDENTITY, wheel, tmp_path).read_bytes() == first, "two builds are equal"
    unpacked = tmp_path / "unpacked"
    bundle.run_tool("unpack", str(packed), str(unpacked))
    assert (unpacked / wheel.name).read_bytes() == b"a wheel"
