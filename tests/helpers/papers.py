"""The real snapshots, served, and the facts in their own files."""

import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from flask import Flask

from service import bootstrap, settings
from service.app import create_app
from service.bootstrap import Services
from tests.helpers.api import Answer as HttpAnswer
from tests.helpers.api import Api
from tests.helpers.caller import Answer, Caller
from tests.helpers.server import UNLIMITED, serving
from tests.helpers.snapshots import DATA

RELEASES = ("papers", "papers-legacy")
UNWRITABLE = "papers-unwritable"
NOBODY = 65_534

DEEP_LEARNING = "b3b71e88c072bbc4241585aa04a513cc"  # a source of 340,736 characters
ATTENTION = "acbe5881db11f906e180120c8ce2f93a"  # three summaries, two translations
NO_SOURCE = "cfb15563a9c5e9e23bbceaf3e7502757"
NO_SUMMARY = "23f6fab8289d1810982d54e8e77d88f3"  # none by template, but a preferred one


@dataclass(frozen=True, slots=True)
class Known:
    """The facts about a paper, without asking the server."""

    paper_id: str
    title: str
    key_type: str
    year: str
    month: str
    venue: str
    doi: str | None
    preferred: str
    available: list[str]
    source_hash: str | None
    source_chars: int | None
    pdf_hash: str | None
    translations: dict[str, str]


@cache
def known() -> dict[str, Known]:
    """The papers in both releases, by id."""
    entries = orjson.loads((DATA / "papers" / "expected.json").read_bytes())
    return {entry["paper_id"]: Known(**entry) for entry in entries}


@dataclass(frozen=True, slots=True)
class Release:
    """The files of a release."""

    folder: Path

    @property
    def snapshot(self) -> Path:
        return self.folder / "snapshot.db"

    def source(self, paper_id: str) -> str:
        return self._text(f"md/{known()[paper_id].source_hash}.md")

    def translation(self, paper_id: str, lang: str) -> str:
        return self._text(f"md_translate/{lang}/{known()[paper_id].translations[lang]}.md")

    def summary(self, paper_id: str, template: str | None = None) -> str:
        return self._text(f"summary/{paper_id}{f'/{template}' if template else ''}.json")

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of the snapshot, read without writing."""
        uri = f"{self.snapshot.as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            return db.execute(sql, values).fetchall()

    def _text(self, path: str) -> str:
        return (self.folder / "static" / path).read_bytes().decode("utf-8")


class Library(Caller):
    """A client of an application that serves only papers: tools at /mcp, routes at /papers/v1."""

    def __init__(self, app: Flask | str, release: Release, token: str | None = None) -> None:
        super().__init__(self._send, token or "")
        self.api = Api(app, token)
        self.release = release

    def _send(self, body: bytes, headers: dict[str, str]) -> bytes:
        open_headers = {key: value for key, value in headers.items() if key != "Authorization"}
        return orjson.dumps(self.api.send("POST", "/mcp", body, open_headers).body)

    def get(self, target: str) -> dict[str, Any]:
        """The body of a REST answer, which must be a success."""
        answer = self.api.get(target)
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.body
        return found

    def refused(self, target: str, status: int) -> dict[str, Any]:
        """The error of a REST answer, which must have this status."""
        answer = self.api.get(target)
        assert answer.status == status, answer
        return answer.error

    def ready(self) -> HttpAnswer:
        return self.api.get("/readyz")

    def contents(self, uri: str) -> list[dict[str, Any]]:
        """The contents of a resource, which must be readable."""
        found: list[dict[str, Any]] = self.result("resources/read", {"uri": uri})["contents"]
        return found

    def unreadable(self, uri: str) -> dict[str, Any]:
        """The JSON-RPC error of a resource, which must not be readable."""
        error: dict[str, Any] = self.rpc("resources/read", {"uri": uri})["error"]
        return error


def ids(answer: Answer) -> list[str]:
    """The papers of a search page, in order."""
    return [hit["paper_id"] for hit in answer.structured["data"]]


def papers_app(snapshot: Path, **environ: str) -> Flask:
    """An application in this process that serves only a snapshot."""
    found = settings.load({**UNLIMITED, "RUNG_PAPERS_DB": str(snapshot), **environ})
    built = bootstrap.build(found)
    return create_app(Services(found, papers=built.papers, rates=built.rates))


def in_process(name: str = RELEASES[0], **environ: str) -> Library:
    """A client of a release served in this process."""
    release = Release(DATA / name)
    return Library(papers_app(release.snapshot, **environ), release)


@contextmanager
def serving_papers(
    snapshot: Path, *, workers: int = 1, user: int | None = None, **environ: str
) -> Iterator[str]:
    """Runs a server as in production, without a store; yields its base URL."""
    with serving(
        "service.app:create_app()",
        {"RUNG_PAPERS_DB": str(snapshot), **environ},
        workers=workers,
        config="python:service.serving",
        user=user,
    ) as base_url:
        yield base_url


@contextmanager
def unwritable(release: str = "papers") -> Iterator[Release]:
    """A copy of a release that readers cannot write to, in a folder that all users can read."""
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        folder = shutil.copytree(DATA / release, Path(top) / "release")
        _modes(folder, 0o555, 0o444)
        try:
            yield Release(folder)
        finally:
            _modes(folder, 0o755, 0o644)


def _modes(folder: Path, for_folders: int, for_files: int) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(for_folders if path.is_dir() else for_files)


def may_become_another_user() -> bool:
    return os.geteuid() == 0


class Served:
    """Servers of the releases, each started on first use."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._found: dict[str, Library] = {}

    def __getitem__(self, name: str) -> Library:
        if name not in self._found:
            self._found[name] = self._start(name)
        return self._found[name]

    def _start(self, name: str) -> Library:
        if name in RELEASES:
            release, user = Release(DATA / name), None
        else:
            release, user = self._stack.enter_context(unwritable()), NOBODY
        base_url = self._stack.enter_context(serving_papers(release.snapshot, user=user))
        return Library(base_url, release)


@dataclass(frozen=True, slots=True)
class Trace:
    """The size, time and content of every file, to detect writes."""

    files: dict[str, tuple[int, int, str]]

    @staticmethod
    def of(folder: Path) -> "Trace":
        """The trace of a folder, including its own times."""
        found = {}
        for path in (folder, *sorted(folder.rglob("*"))):
            stat = path.stat()
            content = _digest(path) if path.is_file() else ""
            found[str(path.relative_to(folder))] = (stat.st_size, stat.st_mtime_ns, content)
        return Trace(found)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
