"""Where peers live: an environment each under `var/bench`, made once, and how each is started."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import orjson

from bench.calls import MODERN, call, get
from bench.peers import plain

HOME = Path("var/bench/peers")
HITS = 10

_ASGI = ("uvicorn", "uvloop", "httptools")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Peer:
    """A server to compare with: what its environment holds, how it starts, how it is asked.

    `module` is given the descriptor of a socket that listens, and the file in its environment.
    `ids` finds the ids of the hits in the body of an answer. `statement` is which search it runs.
    """

    name: str
    title: str
    packages: tuple[str, ...]
    module: str
    request: Callable[[str], bytes]
    ids: Callable[[bytes], list[str]]
    statement: str = plain.NAIVE

    @property
    def home(self) -> Path:
        return HOME / self.name

    @property
    def python(self) -> Path:
        return (self.home / "bin/python").absolute()

    def command(self, fd: int) -> list[str]:
        """What serves it from the socket of this descriptor."""
        return [str(self.python), "-m", self.module, str(fd)]

    def version(self) -> str:
        """The installed version of its first package."""
        shown = subprocess.run(
            [self.python, "-m", "pip", "show", _NAME.match(self.packages[0])[0]],  # type: ignore
            check=True,
            capture_output=True,
            text=True,
        )
        return re.search(r"^Version: (.+)$", shown.stdout, re.MULTILINE)[1]  # type: ignore


def prepare(peer: Peer) -> None:
    """Makes the environment of a peer where it is not there."""
    if (peer.home / ".installed").exists():
        return
    shutil.rmtree(peer.home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", peer.home], check=True)
    pip = [f"{peer.python}", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*pip, *peer.packages], check=True, env=apart)
    (peer.home / ".installed").touch()


def environment(database: Path, statement: str = plain.NAIVE) -> dict[str, str]:
    """What a peer's process is told."""
    return {
        **os.environ,
        plain.DATABASE: str(database.absolute()),
        plain.STATEMENT: statement,
        "PYTHONPATH": str(Path.cwd()),
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    }


def _tool_request(query: str) -> bytes:
    return call(None, "search", {"query": query, "limit": HITS}, era=MODERN)


def _canned_request(query: str) -> bytes:
    return get(f"/plain/search.json?_shape=array&q={quote(plain.expression(query))}")


def _tool_ids(body: bytes) -> list[str]:
    result = orjson.loads(body)["result"]
    return [hit["id"] for hit in result["structuredContent"]["results"]]


def _canned_ids(body: bytes) -> list[str]:
    return [f"{row['source']}/{row['stream']}:{row['id']}" for row in orjson.loads(body)]


OFFICIAL = Peer(
    "official",
    "official SDK, 2026-07-28",
    ("mcp", *_ASGI),
    "bench.peers.official",
    _tool_request,
    _tool_ids,
)
FASTMCP = Peer(
    "fastmcp",
    "fastmcp, 2026-07-28",
    ("fastmcp", *_ASGI),
    "bench.peers.fast",
    _tool_request,
    _tool_ids,
)
DATASETTE = Peer(
    "datasette",
    "Datasette, canned query",
    ("datasette<1", "setuptools<81", *_ASGI),
    "bench.peers.canned",
    _canned_request,
    _canned_ids,
)
#: Told beside the rows: what the SDK reaches with the statements of the limit.
QUICKER = replace(OFFICIAL, title="official SDK, the limit's SQL", statement=plain.TWO_STEPS)
PEERS = (OFFICIAL, FASTMCP, DATASETTE)
