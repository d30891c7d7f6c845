"""The TypeScript SDKs as peers: Node programs with pinned packages, all in `var/bench`."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson

from bench.calls import LEGACY
from bench.peers import environments
from bench.peers.environments import Peer, quietly, tool_ids, tool_request

SOURCE = Path(__file__).parent / "typescript"
HOME = environments.HOME / "typescript"
LOCK = "package-lock.json"


@dataclass(frozen=True, slots=True)
class Script(Peer):
    """A peer whose `module` is a script. All scripts share the packages of one lock file."""

    @property
    def home(self) -> Path:
        return HOME

    def command(self, fd: int) -> list[str]:
        """The command that serves the peer from the socket of this descriptor."""
        return [f"{_node()}", f"{(HOME / self.module).absolute()}", f"{fd}"]

    def prepare(self) -> None:
        """Installs what the lock file pins if it is not installed, and copies the scripts."""
        lock, installed = (SOURCE / LOCK).read_bytes(), HOME / ".installed"
        if not installed.exists() or installed.read_bytes() != lock:
            shutil.rmtree(HOME, ignore_errors=True)
            shutil.copytree(SOURCE, HOME)
            quietly(["npm", "ci", "--no-audit", "--no-fund"], cwd=HOME)
            installed.write_bytes(lock)
        # Node looks for packages next to the script, so the scripts go into their folder.
        for script in SOURCE.glob("*.mjs"):
            shutil.copy(script, HOME)

    def versions(self) -> Iterator[tuple[str, str]]:
        """Yields the packages and their versions, if they are installed."""
        if (HOME / ".installed").exists():
            for name in self.packages:
                found = orjson.loads((HOME / f"node_modules/{name}/package.json").read_bytes())
                yield name, found["version"]


def missing() -> str:
    """Installs the scripts; returns why they cannot be run here, or an empty text if they can."""
    if shutil.which("npm") is None:
        return "npm is not installed"
    try:
        FIRST.prepare()
    except RuntimeError as error:
        return f"npm could not install them: {error}"[:300]
    return ""


def _node() -> Path:
    """The Node that npm installed, not the machine's own."""
    return (HOME / "node_modules/.bin/node").absolute()


FIRST = Script(
    "first",
    "TypeScript SDK 1, 2025-06-18",
    ("@modelcontextprotocol/sdk", "better-sqlite3", "node"),
    "first.mjs",
    partial(tool_request, era=LEGACY),
    tool_ids,
)
SECOND = Script(
    "second",
    "TypeScript SDK 2, 2026-07-28",
    ("@modelcontextprotocol/server", "@modelcontextprotocol/node"),
    "second.mjs",
    tool_request,
    tool_ids,
)
SCRIPTS = (FIRST, SECOND)
