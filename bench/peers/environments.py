"""Where peers live: an environment each under `var/bench`, made once, and how each is started."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
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

    def prepare(self) -> None:
        """Makes its environment where it is not there; raises `RuntimeError` where it cannot."""
        if (self.home / ".installed").exists():
            return
        shutil.rmtree(self.home, ignore_errors=True)
        quietly([sys.executable, "-m", "venv", f"{self.home}"])
        pip = [f"{self.python}", "-m", "pip", "install", "--disable-pip-version-check"]
        quietly([*pip, *self.packages])
        (self.home / ".installed").touch()

    def versions(self) -> Iterator[tuple[str, str]]:
        """Its first package and the version installed, where it is."""
        name = _NAME.match(self.packages[0])[0]  # type: ignore[index]
        for found in self.home.glob(f"lib/*/site-packages/{name}-*.dist-info"):
            yield name, found.name.removesuffix(".dist-info").partition("-")[2]


def quietly(command: Sequence[str], cwd: Path | None = None) -> str:
    """What a command prints, which nobody sees unless it fails: then it raises `RuntimeError`."""
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(command, cwd=cwd, env=apart, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {(run.stderr or run.stdout)[-2_000:]}")
    return run.stdout


def environment(database: Path, statement: str = plain.NAIVE) -> dict[str, str]:
    """What a peer's process is told."""
    return {
        **os.environ,
        plain.DATABASE: str(database.absolute()),
        plain.STATEMENT: statement,
        "BENCH_SEARCH": plain.SEARCH,
        "BENCH_MMAP_BYTES": str(plain.MMAP_BYTES),
        "PYTHONPATH": str(Path.cwd()),
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    }


def tool_request(query: str, era: str = MODERN) -> bytes:
    """The search as a call of a tool."""
    return call(None, "search", {"query": query, "limit": HITS}, era=era)


def tool_ids(body: bytes) -> list[str]:
    """The ids of the hits a tool has found."""
    result = orjson.loads(body)["result"]
    return [hit["id"] for hit in result["structuredContent"]["results"]]


def _canned_request(query: str) -> bytes:
    return get(f"/plain/search.json?_shape=array&q={quote(plain.expression(query))}")


def _canned_ids(body: bytes) -> list[str]:
    return [f"{row['source']}/{row['stream']}:{row['id']}" for row in orjson.loads(body)]


OFFICIAL = Peer(
    "official",
    "official SDK, 2026-07-28",
    ("mcp", *_ASGI),
    "bench.peers.official",
    tool_request,
    tool_ids,
)
FASTMCP = Peer(
    "fastmcp",
    "fastmcp, 2026-07-28",
    ("fastmcp", *_ASGI),
    "bench.peers.fast",
    tool_request,
    tool_ids,
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
