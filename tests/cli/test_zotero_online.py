"""A library at api.zotero.org is a source: what has changed is read, in few requests."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from service.cli.sources import WAITING
from service.syncing.kinds import zotero
from tests.helpers.loopback import Asked, Reply, answering
from tests.helpers.synced import Synced

KEY = "P9NiFoyLeZu2bZNvvuQPDWsd"
PREFIX = "/users/475425"
TIMES = {"dateAdded": "2026-03-01T08:00:00Z", "dateModified": "2026-03-02T09:00:00Z"}


class Zotero:
    """The documented read requests of a library, whose objects have versions."""

    def __init__(self) -> None:
        self.url, self.version, self.status = "", 0, 200
        self.headers = dict[str, str]()
        self.items = dict[str, dict[str, Any]]()
        self.collections = dict[str, dict[str, Any]]()
        self.requests = list[tuple[float, str, dict[str, str]]]()

    @property
    def address(self) -> str:
        return f"{self.url}{PREFIX}"

    def put(self, key: str, kind: str, **data: Any) -> None:
        """Adds an item, or replaces it."""
        self.version += 1
        data = {"key": key, "version": self.version, "itemType": kind, **TIMES, **data}
        self.items[key] = {"key": key, "version": self.version, "data": data}

    def name(self, key: str, name: str) -> None:
        """Adds a collection, or gives it another name."""
        self.version += 1
        self.collections[key] = {"key": key, "data": {"key": key, "name": name}}

    def drop(self, *keys: str) -> None:
        """Moves items to the trash, so that they are no longer listed."""
        self.version += 1
        for key in keys:
            del self.items[key]

    def answer(self, asked: Asked) -> Reply:
        assert asked.method == "GET"
        url = urlsplit(asked.target)
        words = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.requests.append((time.monotonic(), url.path.removeprefix(PREFIX), words))
        if asked.headers.get("authorization") != f"Bearer {KEY}":
            return self._reply(403, b"Invalid key")
        if self.status != 200:
            return self._reply(self.status, b"")
        if int(asked.headers.get("if-modified-since-version", 0)) == self.version > 0:
            return self._reply(304, b"")
        assert asked.headers["zotero-api-version"] == "3"
        return self._reply(200, *self._page(url.path, words))

    def _page(self, path: str, words: dict[str, str]) -> tuple[bytes, int]:
        """The body of a page, and the number of all results."""
        if words.get("format") == "versions":
            return json.dumps({k: i["version"] for k, i in self.items.items()}).encode(), 0
        objects = self.items if path == f"{PREFIX}/items" else self.collections
        chosen = list(objects.values())
        if "itemKey" in words:
            keys = words["itemKey"].split(",")
            assert len(keys) <= 50
            chosen = [objects[key] for key in keys if key in objects]
        start, limit = int(words.get("start", 0)), min(int(words.get("limit", 25)), 100)
        return json.dumps(chosen[start : start + limit]).encode(), len(chosen)

    def _reply(self, status: int, body: bytes, total: int = 0) -> Reply:
        headers = {"Total-Results": f"{total}", "Last-Modified-Version": f"{self.version}"}
        return Reply(status, body, headers | self.headers)


@pytest.fixture
def server() -> Iterator[Zotero]:
    """A library with an article, what belongs to it, and a note."""
    server = Zotero()
    with answering(server.answer) as listening:
        server.url = listening.url
        server.name("COLLECT1", "Reading")
        server.put(
            "ARTICLE1",
            "journalArticle",
            title="On tides",
            abstractNote="Elms bloom at spring tide.",
            date="March 2026",
            DOI="10.1000/1",
            pages="4-9",
            creators=[
                {"creatorType": "author", "firstName": "Ada", "lastName": "König"},
                {"creatorType": "editor", "name": "Harbour Office"},
            ],
            tags=[{"tag": "tides"}, {"tag": "lamps", "type": 1}],
            collections=["COLLECT1"],
            relations={},
        )
        server.items["ARTICLE1"]["meta"] = {"parsedDate": "2026-03"}
        note = "<p>Read on the <b>ferry</b>.</p>"
        server.put("NOTE0001", "note", parentItem="ARTICLE1", note=note, tags=[])
        name = "König 2026.pdf"
        server.put("FILE0001", "attachment", parentItem="ARTICLE1", title="PDF", filename=name)
        for number, text in ((2, "neap tide"), (1, "spring tide")):
            order = {"annotationSortIndex": f"0000{number}", "annotationComment": ""}
            words = {"parentItem": "FILE0001", "annotationText": text, **order}
            server.put(f"MARK000{number}", "annotation", **words)
        server.put("NOTE0002", "note", note="<p>Buy lamps.</p>")
        yield server


@pytest.fixture
def synced(tmp_path: Path, server: Zotero) -> Synced:
    synced = Synced.make(tmp_path)
    (tmp_path / "key").write_text(f"{KEY}\n", encoding="utf-8")
    words = ("--kind", "zotero", "--password-command", f"cat {tmp_path / 'key'}")
    synced.ok("source", "add", "zotero", server.address, *words)
    return synced


def items(synced: Synced) -> dict[str, dict[str, Any]]:
    return synced.records("zotero")["items"]


def read(server: Zotero) -> list[str]:
    """The items that were read since the last call, by their keys."""
    keys = [words["itemKey"] for _, _, words in server.requests if "itemKey" in words]
    server.requests.clear()
    return sorted(",".join(keys).split(",")) if keys else []


def test_items_come_with_what_belongs_to_them(synced: Synced) -> None:
    assert "zotero: 2 new." in synced.ok("sync").stderr
    times = {"added_at": "2026-03-01T08:00:00Z", "changed_at": "2026-03-02T09:00:00Z"}
    assert items(synced) == {
        "ARTICLE1": {
            **{"id": "ARTICLE1", "kind": "journalArticle", "title": "On tides", **times},
            **{"abstract": "Elms bloom at spring tide.", "date": "2026-03", "doi": "10.1000/1"},
            **{"other": ["pages: 4-9"], "tags": ["lamps", "tides"], "collections": ["Reading"]},
            **{"creators": ["Ada König", "Harbour Office (editor)"]},
            **{"notes": ["Read on the ferry."], "files": ["König 2026.pdf"]},
            "annotations": ["spring tide", "neap tide"],
        },
        "NOTE0002": {
            **{"id": "NOTE0002", "kind": "note", "title": "Buy lamps.", **times},
            "notes": ["Buy lamps."],
        },
    }


def test_only_what_has_changed_is_read(synced: Synced, server: Zotero) -> None:
    synced.ok("sync")
    store = (synced.folder / "rung.db").read_bytes()
    read(server)
    assert "zotero: nothing new." in synced.ok("sync").stderr
    assert (synced.folder / "rung.db").read_bytes() == store
    assert len(server.requests) == 1

    server.put("NOTE0002", "note", note="<p>Buy two lamps.</p>")
    read(server)
    assert "zotero: 1 changed." in synced.ok("sync").stderr
    assert read(server) == ["NOTE0002"]
    server.put("MARK0003", "annotation", parentItem="FILE0001", annotationText="slack water")
    assert "zotero: 1 changed." in synced.ok("sync").stderr
    assert items(synced)["ARTICLE1"]["annotations"][0] == "slack water"
    assert "NOTE0002" not in read(server)

    server.drop("NOTE0001")
    assert "zotero: 1 changed." in synced.ok("sync").stderr
    assert "notes" not in items(synced)["ARTICLE1"]
    server.name("COLLECT1", "Done")
    assert "zotero: 1 changed." in synced.ok("sync").stderr
    assert items(synced)["ARTICLE1"]["collections"] == ["Done"]
    server.put("FILE0001", "attachment", parentItem="NOTE0002", filename="moved.pdf")
    assert "zotero: 2 changed." in synced.ok("sync").stderr
    assert len(items(synced)["NOTE0002"]["annotations"]) == 3
    server.drop("NOTE0002")  # what belongs to it is still listed
    assert "zotero: 1 deleted." in synced.ok("sync").stderr
    assert list(items(synced)) == ["ARTICLE1"]
    server.drop(*server.items)
    assert synced.run("sync").exit_code == WAITING
    assert list(items(synced)) == ["ARTICLE1"]


def test_a_large_library_is_read_in_pages(synced: Synced, server: Zotero) -> None:
    for number in range(230):
        server.name(f"C{number}", f"Shelf {number}")
        server.put(f"BOOK{number}", "book", title=f"Book {number}", collections=[f"C{number}"])
    assert "zotero: 232 new." in synced.ok("sync").stderr
    assert items(synced)["BOOK229"]["collections"] == ["Shelf 229"]
    assert len(server.requests) == 1 + 3 + 5  # versions, collections, items


def test_a_pause_that_the_server_asks_for_is_made(
    synced: Synced, server: Zotero, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zotero, "PAUSE_SECONDS", 1)
    server.headers = {"Backoff": "3600"}
    synced.ok("sync")
    times = [moment for moment, _, _ in server.requests]
    assert len(times) == 3 and min(b - a for a, b in zip(times, times[1:])) >= 1


@pytest.mark.parametrize("status", [429, 503, 500])
def test_a_busy_or_broken_server_changes_nothing(
    synced: Synced, server: Zotero, status: int
) -> None:
    synced.ok("sync")
    store = (synced.folder / "rung.db").read_bytes()
    server.put("NOTE0003", "note", note="New")
    server.status, server.headers = status, {"Retry-After": "120"}
    shown = synced.run("sync").stderr
    assert "status 500" in shown if status == 500 else "Try again in 120 s." in shown
    assert (synced.folder / "rung.db").read_bytes() == store
    server.status = 200
    assert "zotero: 1 new." in synced.ok("sync").stderr


def test_a_wrong_key_is_explained_and_shown_nowhere(synced: Synced) -> None:
    (synced.folder / "key").write_text("wrong-and-secret", encoding="utf-8")
    result = synced.run("sync")
    assert result.exit_code == 1 and "refused the sign-in" in result.stderr
    kept = [path for path in synced.folder.rglob("*") if path.is_file() and path.name != "key"]
    assert not [path for path in kept if b"wrong-and-secret" in path.read_bytes()]


@pytest.mark.parametrize(
    "address", ["https://api.zotero.org/", "https://www.zotero.org/ada/items", "http://x/users/1"]
)
def test_an_address_that_is_no_library_is_refused(tmp_path: Path, address: str) -> None:
    result = Synced.make(tmp_path).run("source", "add", "x", address, "--kind", "zotero")
    assert result.exit_code == 1
    assert "users/NUMBER" in result.stderr or "Use https: instead" in result.stderr
