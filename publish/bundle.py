"""The MCPB bundle: a click in a desktop host installs Rung and starts `rung stdio`."""

import json
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import gmtime
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from publish import registry
from publish.build import epoch
from publish.identity import Identity
from service.operations import OPERATIONS

#: The official tool, from npm.
TOOL: Final = "@anthropic-ai/mcpb@2.1.2"
_ENTRY = "from service.__main__ import main\n\nmain()\n"


def manifest(identity: Identity) -> dict[str, Any]:
    """`manifest.json`, version 0.4: `uv` installs what the wheel needs on the user's machine."""
    command = ["run", "--directory", "${__dirname}", "rung", "stdio"]
    return {
        "manifest_version": "0.4",
        "name": identity.name,
        "display_name": "Rung",
        "version": identity.version,
        "description": registry.DESCRIPTION,
        "author": {"name": "The Rung authors", "url": identity.repository},
        "repository": {"type": "git", "url": identity.repository},
        "documentation": identity.page("docs/README.md"),
        "license": "Apache-2.0",
        "server": {
            "type": "uv",
            "entry_point": "main.py",
            "mcp_config": {
                "command": "uv",
                "args": [*command, "--store", "${user_config.store}"],
                "env": {"RUNG_TOKEN": "${user_config.token}"},
            },
        },
        "user_config": {
            "store": {
                "type": "file",
                "title": "Store",
                "description": registry.STORE,
                "required": True,
            },
            "token": {
                "type": "string",
                "title": "Token",
                "description": registry.TOKEN,
                "required": True,
                "sensitive": True,
            },
        },
        "tools": [
            {"name": operation.name, "description": operation.description}
            for operation in OPERATIONS
        ],
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": ">=3.11"}},
    }


def project(identity: Identity, wheel: str) -> str:
    """`pyproject.toml` of the bundle. It names the wheel by its path, never by an index."""
    return (
        f'[project]\nname = "{identity.name}-bundle"\nversion = "{identity.version}"\n'
        f'requires-python = ">=3.11"\ndependencies = ["{identity.name}"]\n\n'
        f"[tool.uv]\npackage = false\n\n"
        f'[tool.uv.sources]\n{identity.name} = {{ path = "{wheel}" }}\n'
    )


def pack(identity: Identity, wheel: Path, out: Path) -> Path:
    """Checks and packs the bundle with the official tool. Raises `RuntimeError` if it refuses."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        text = json.dumps(manifest(identity), indent=2)
        (folder / "manifest.json").write_text(text, encoding="utf-8")
        (folder / "pyproject.toml").write_text(project(identity, wheel.name), encoding="utf-8")
        (folder / "main.py").write_text(_ENTRY, encoding="utf-8")
        shutil.copy(wheel, folder)
        bundle = out.resolve() / "rung.mcpb"
        run_tool("validate", str(folder / "manifest.json"))
        run_tool("pack", str(folder), str(bundle))
    _normalise(bundle)
    return bundle


def _normalise(bundle: Path) -> None:
    """Rewrites the bundle with the time of every file in what is built."""
    with ZipFile(bundle) as packed:
        files = {name: packed.read(name) for name in sorted(packed.namelist())}
    with ZipFile(bundle, "w", ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(ZipInfo(name, gmtime(epoch())[:6]), content, ZIP_DEFLATED)


def run_tool(*words: str) -> None:
    """Runs the official tool. Raises `RuntimeError` with its output if it refuses."""
    command = ["npm", "exec", "--yes", f"--package={TOOL}", "--", "mcpb", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"mcpb {words[0]} refuses it:\n{done.stdout}{done.stderr}")
