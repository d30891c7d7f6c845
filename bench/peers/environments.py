"""The peers: each has an environment under `var/bench`, made once, and a command to start it."""

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
_RUNG = ("-r", "requirements.txt")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Peer:
    """A server to compare with: what its environment contains, how it starts, how to query it.

    `module` gets the descriptor of a listening socket as its argument, and the path of the file in
    an environment variable. `ids` returns the ids of the hits in the body of an answer. A peer that
    is `carrying` serves Rung's search, so it gets the same requests as Rung. `stop_words` are the
    words it does not search for.
    """

    name: str
    title: str
    packages: tuple[str, ...]
    module: str
    request: Callable[[str], bytes]
    ids: Callable[[bytes], list[str]]
    carrying: bool = False
    stop_words: str = plain.STOP_WORDS

    @property
    def home(self) -> Path:
        return HOME / self.name

    @property
    def python(self) -> Path:
        return (self.home / "bin/python").absolute()

    def command(self, fd: int) -> list[str]:
        """The command that serves the peer from the socket of this descriptor."""
        return [str(self.python), "-m", self.module, str(fd)]

    def prepare(self) -> None:
        """Makes the environment if it does not exist. Raises `RuntimeError` if that fails."""
        installed, wanted = self.home / ".installed", " ".join(self.packages)
        if installed.exists() and installed.read_text() == wanted:
            return
        shutil.rmtree(self.home, ignore_errors=True)
        quietly([sys.executable, "-m", "venv", f"{self.home}"])
        pip = [f"{self.python}", "-m", "pip", "install", "--disable-pip-version-check"]
        quietly([*pip, *self.packages])
        installed.write_text(wanted)

    def versions(self) -> Iterator[tuple[str, str]]:
        """Yields the first package and its version, if it is installed."""
        name = _NAME.match(self.packages[0])[0]  # type: ignore[index]
        for found in self.home.glob(f"lib/*/site-packages/{name}-*.dist-info"):
            yield name, found.name.removesuffix(".dist-info").partition("-")[2]


def quietly(command: Sequence[str], cwd: Path | None = None) -> str:
    """Returns what a command prints. Raises `RuntimeError` with its output if it fails."""
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(command, cwd=cwd, env=apart, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {(run.stderr or run.stdout)[-2_000:]}")
    return run.stdout


def environment(database: Path, stop_words: str = plain.STOP_WORDS) -> dict[str, str]:
    """The environment of a peer's process. Rung's store is in the same folder as `database`."""
    return {
        **os.environ,
        plain.DATABASE: str(database.absolute()),
        plain.DROPPED: stop_words,
        "RUNG_STORE": str(database.with_name("store.db").absolute()),
        "RUNG_ANSWER_CACHE_BYTES": "0",
        "RUNG_RATE_LIMIT_TOKEN": "999999999/minute",
        "BENCH_SEARCH": plain.SEARCH,
        "BENCH_MMAP_BYTES": str(plain.MMAP_BYTES),
        "PYTHONPATH": str(Path.cwd()),
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    }


def tool_request(query: str, era: str = MODERN) -> bytes:
    """The search as a tool call."""
    return call(None, "search", {"query": query, "limit": HITS}, era=era)


def tool_ids(body: bytes) -> list[str]:
    """The ids of the hits in a tool result."""
    result = orjson.loads(body)["result"]
    return [hit["id"] for hit in result["structuredContent"]["results"]]


def _canned_request(query: str) -> bytes:
    return get(f"/plain/search.json?_shape=array&q={quote(plain.expression(query))}")


def _canned_ids(body: bytes) -> list[str]:
    return [f"{row['source']}/{row['stream']}:{row['id']}" for row in orjson.loads(body)]


OFFICIAL = Peer(
    "official",
    "official SDK, 2026-07-28",
    ("mcp", *_ASGI, *_RUNG),
    "bench.peers.official",
    tool_request,
    tool_ids,
)
FASTMCP = Peer(
    "fastmcp",
    "fastmcp, 2026-07-28",
    ("fastmcp", *_ASGI, *_RUNG),
    "bench.peers.fast",
    tool_request,
    tool_ids,
)
DATASETTE = Peer(
    "datasette",
    "Datasette, canned query",
    ("datasette<1", "setuptools<81", "PyStemmer", *_ASGI),
    "bench.peers.canned",
    _canned_request,
    _canned_ids,
)
PEERS = (OFFICIAL, FASTMCP, DATASETTE)
OFFICIAL_CARRYING = replace(
    OFFICIAL,
    title="official SDK carrying Rung's search",
    module="bench.peers.official_carrying",
    carrying=True,
)
FASTMCP_CARRYING = replace(
    FASTMCP,
    title="fastmcp carrying Rung's search",
    module="bench.peers.fast_carrying",
    carrying=True,
)
CARRYING = (OFFICIAL_CARRYING, FASTMCP_CARRYING)
#: The official SDK if it searches for every word of a question.
KEEPING = replace(OFFICIAL, title="official SDK, stop words kept", stop_words="")
