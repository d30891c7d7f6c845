"""A store with everything that an export can meet, and a shell that reads it.

archive = Archive.make(tmp_path)
archive.shell.ok("export", "field", LONG_ID, "text", "-o", "long.txt")
"""

import base64
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from service.records.intake import Row
from tests.helpers.fronts import Bend, front
from tests.helpers.loopback import Asked, Loopback, Reply
from tests.helpers.server import ROOT, serving
from tests.helpers.shell import Shell
from tests.helpers.stdio import environment
from tests.helpers.stores import bring
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import (
    EMITTED_AT,
    TIMES,
    Connection,
    House,
    World,
    blob,
    build,
    moment,
    row,
    stream,
    text,
)

Passed = Callable[[Asked], Reply]

LATER = "2026-06-01T00:00:00Z"
WINDOW = 16_384  # the largest there is

#: Characters of two and four bytes, both kinds of line ends, and what JSON and CSV escape.
LONG = "".join(f'{n}, "ß" \\ 🌒\r\nnext\n' for n in range(90_000))
NESTED = {"list": [{"n": n, "say": 'a "b"\n'} for n in range(30_000)]}
BYTES = bytes(range(256)) * 8_000
BASE64 = base64.b64encode(bytes(range(16)) * 64).decode()
LONG_ID = "home/notes:long"
MIDDLE = LONG[: WINDOW * 6]
MIDDLE_ID = "home/notes:middle"
NOTES = 230

FIELDS = {
    "title": text("primary-title"),
    "text": text("primary-text"),
    "tree": {"type": "object"},
    "file": {"type": "object"},
    "raw": text(),
    "at": moment(),
}
QUERY = {
    "range_filters": {"at": TIMES},
    "exact_filters": ["id"],
    "search": {"lexical_fields": ["title", "text"]},
}


def notes() -> list[Row]:
    """Many short notes, one with large values, one with bytes."""
    rows = [
        row("notes", f"n{n:03}", title=f'Note {n}, or "{n}"', text="line\r\n" * (n % 7), at=_day(n))
        for n in range(NOTES)
    ]
    rows.append(
        row("notes", "long", title="long", text=LONG, tree=NESTED, at="2026-02-01T00:00:00Z")
    )
    rows.append(_middle(MIDDLE, EMITTED_AT))
    bytes_too = {"file": blob(BYTES, "application/pdf", "scan"), "raw": BASE64}
    rows.append(row("notes", "bytes", title="", tree={"a": [1]}, at=None, **bytes_too))
    return rows


def _middle(text: str, emitted_at: str) -> Row:
    data = {"id": "middle", "title": "middle", "text": text, "at": "2026-02-02T00:00:00Z"}
    return Row(data, "middle", emitted_at, "notes")


def _day(number: int) -> str:
    return f"2026-01-{1 + number % 28:02}T00:{number // 28:02}:00Z"


@dataclass
class Archive:
    """The store and a shell with a token for all of it."""

    house: House
    folder: Path
    token: str = field(repr=False)

    @classmethod
    def make(cls, folder: Path, rows: list[Row]) -> "Archive":
        views = [{"id": "brief", "label": "Brief", "fields": ["title", "at"]}]
        manifest = stream("notes", FIELDS, "at", query=QUERY, views=views)
        world = World((Connection("home", "notes", "Home", (manifest,), tuple(rows)),))
        house = build(world, folder)
        return cls(house, folder, house.grant()[1])

    @property
    def environ(self) -> dict[str, str]:
        """The environment in which a shell reads the store."""
        return {
            **self.house.environment,
            "RUNG_TOKEN": self.token,
            "RUNG_CONFIG": os.devnull,
            "NO_PROXY": "127.0.0.1",
        }

    @property
    def shell(self) -> Shell:
        return Shell(self.environ, self.folder)

    def at(self, **environ: str) -> Shell:
        """A shell that reads from another place."""
        left = {name: value for name, value in self.environ.items() if name != "RUNG_STORE"}
        return Shell({**left, **environ}, self.folder)

    def change(self, text: str) -> None:
        """Changes the text of the note of middle length, with a later time."""
        bring(self.house, "home", _middle(text, LATER))

    @classmethod
    def small(cls, folder: Path) -> "Archive":
        """A store of one note, of middle length."""
        return cls.make(folder, [_middle(MIDDLE, EMITTED_AT)])

    @contextmanager
    def served(self) -> Iterator[str]:
        """Runs a server over the store."""
        with serving("service.app:create_app()", self.house.environment) as url:
            yield url

    @cached_property
    def data(self) -> dict[str, dict[str, Any]]:
        """The imported data, by record id."""
        return {str(one.key): one.data for one in notes()}


@contextmanager
def bent(url: str, bend: Bend) -> Iterator[Loopback]:
    """A server in front of another, like those of `fronts`; blobs keep their lengths."""

    def kept(asked: Asked, passed: Passed) -> Reply:
        reply = bend(asked, passed)
        if asked.method == "HEAD" and "/blobs/" in asked.target:
            headers = {**reply.headers, "Content-Length": str(len(BYTES))}
            return Reply(reply.status, b"", headers)
        return reply

    with front(url, kept) as server:
        yield server


def asked_for(asked: Asked, name: str) -> str | None:
    """A parameter of a request."""
    return parse_qs(urlsplit(asked.target).query).get(name, [None])[0]


class Killer:
    """A bend that kills a process, if there is one, as soon as the server gets a request."""

    def __init__(self, when: Callable[[Asked], bool]) -> None:
        self._when = when
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, asked: Asked, passed: Passed) -> Reply:
        if self._process is not None and self._when(asked):
            self._process.kill()
            self._process.wait()
        return passed(asked)

    def run(self, shell: Shell, *words: str) -> None:
        """Runs `rung export` until it is killed."""
        command = [sys.executable, "-m", "service", "export", *words]
        environ = environment(**shell.environ)
        with subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.DEVNULL) as process:
            self._process = process
            assert process.wait(WAIT_SECONDS) == -signal.SIGKILL
            self._process = None
