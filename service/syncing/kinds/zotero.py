"""Zotero libraries: from a copy of the database on this machine, or over the web API.

The database is one part. Over the web API, each item that belongs to no other is a part, whose
version has the versions of all items that belong to it, and a hash of the names of collections.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import orjson

from evidence.errors import InvalidRequest, Unavailable
from evidence.work import portions
from service.syncing.connector import Connector, Fetched, Kind, Listing, SourceSettings, Stored
from service.syncing.kinds import web

NAME: Final = "zotero.sqlite"
LIBRARY: Final = "library"
#: The most items that a request may name, and collections on a page.
ITEMS_TOGETHER, PAGE = 50, 100
#: The longest pause that a server may ask for between two requests.
PAUSE_SECONDS: Final = 60
#: An annotation belongs to a file, and that to an item.
_DEPTH: Final = 2
_PATH: Final = re.compile(r"(?:/api)?/(?:users/[0-9]+|groups/(?P<group>[0-9]+))/?")


class Library(Connector):
    """The library of a Zotero on this machine, which may be running."""

    format = "zotero"

    def __init__(self, source: SourceSettings) -> None:
        self._path, self._version = Path(source.address), ""

    def check(self) -> None:
        self._state()

    def list_parts(self, stored: Stored) -> Listing | None:
        self._version = self._state()
        return Listing({LIBRARY: self._version}, {})

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        with TemporaryDirectory() as folder:
            path = Path(folder) / NAME
            for suffix in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{self._path}{suffix}", f"{path}{suffix}")
            if self._state() != self._version or self._is_in_transaction():
                raise Unavailable("Zotero is writing to its library. Try again later.")
            yield Fetched(path, {str(path): LIBRARY})

    def _state(self) -> str:
        """Changes whenever the library does."""
        try:
            status = [os.stat(self._path)]
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read: {error.strerror}.") from error
        with suppress(FileNotFoundError):
            status.append(os.stat(f"{self._path}-wal"))
        return " ".join(f"{file.st_mtime_ns} {file.st_size}" for file in status)

    def _is_in_transaction(self) -> bool:
        """Whether the journal is in use; after a transaction, its first bytes are overwritten."""
        with suppress(FileNotFoundError), open(f"{self._path}-journal", "rb") as journal:
            return journal.read(1) not in (b"", b"\0")
        return False


class WebLibrary(Connector):
    """The library of a user or a group at api.zotero.org, or of a Zotero on this machine."""

    format = "zotero"

    def __init__(self, source: SourceSettings) -> None:
        self._site, self._pause = web.Site(source), 0
        path = _PATH.fullmatch(urlsplit(source.address).path)
        self._group = path["group"] if path else None
        self._items = dict[str, Any]()
        self._collections = dict[str, str]()
        #: The items of each part: their keys and versions.
        self._parts = dict[str, dict[str, int]]()

    def check(self) -> None:
        self._ask("items", limit=1)

    def list_parts(self, stored: Stored) -> Listing | None:
        since = {"If-Modified-Since-Version": str(stored.position.get("version", 0))}
        versions, headers = self._ask("items", since, format="versions")
        if versions is None:
            return None
        self._collections = self._names()
        names = hashlib.sha256(orjson.dumps(sorted(self._collections.items()))).hexdigest()
        before = {part: orjson.loads(text) for part, text in stored.versions().items() if text}
        part_of = {
            key: part
            for part, version in before.items()
            if version["collections"] == names and version["items"].items() <= versions.items()
            for key in version["items"]
        }
        self._download(versions.keys() - part_of.keys())
        for key, version in sorted(versions.items()):
            if (part := self._part(key, part_of)) in versions:
                self._parts.setdefault(part, {})[key] = version
        texts = {
            part: orjson.dumps({"collections": names, "items": items}).decode()
            for part, items in self._parts.items()
        }
        return Listing(texts, {"version": int(headers.get("Last-Modified-Version", 0))})

    def _part(self, key: str, part_of: dict[str, str]) -> str:
        """The item that an item belongs to, or itself."""
        for _ in range(_DEPTH):
            if key in part_of or key not in self._items:
                break
            key = self._items[key]["data"].get("parentItem") or key
        return part_of.get(key, key)

    def _names(self) -> dict[str, str]:
        """The names of all collections by their keys."""
        names, start, total = dict[str, str](), 0, 1
        while start < total:
            page, headers = self._ask("collections", start=start, limit=PAGE)
            names |= {entry["key"]: entry["data"]["name"] for entry in page}
            total = int(headers.get("Total-Results", 0)) if page else 0
            start += len(page)
        return names

    def _download(self, keys: Iterable[str]) -> None:
        """Reads those items with these keys that still exist."""
        missing = sorted(set(keys) - self._items.keys())
        for some in portions(missing, ITEMS_TOGETHER):
            items, _ = self._ask("items", itemKey=",".join(some), limit=ITEMS_TOGETHER)
            self._items |= {item["key"]: item for item in items}

    def _ask(
        self, path: str, headers: dict[str, str] | None = None, **words: Any
    ) -> tuple[Any, Mapping[str, str]]:
        """The value of an answer, None if nothing changed, and its headers.

        Waits first for as long as the last answer asked for.
        """
        Event().wait(self._pause)
        url = f"{self._site.url.rstrip('/')}/{path}?{urlencode(words)}"
        headers = {"Zotero-API-Version": "3", **(headers or {})}
        answer = self._site.ask("GET", url, headers, allowed=(429, 503))
        if answer.status in (429, 503):
            seconds = answer.headers.get("Retry-After", "some")
            raise Unavailable(f"Zotero is busy. Try again in {seconds} s.")
        value, pause = answer.json(), answer.headers.get("Backoff", "")
        if value is None and answer.status != 304:
            raise Unavailable("The server did not send a Zotero response. Check the address.")
        self._pause = min(int(pause), PAUSE_SECONDS) if pause.isdecimal() else 0
        return value, answer.headers

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        for some in portions(parts, ITEMS_TOGETHER):
            self._download(key for part in some for key in self._parts[part])
            documents = ((part, f"{part}.json", self._document(part)) for part in some)
            yield from Fetched.written(documents)

    def _document(self, part: str) -> bytes:
        """What the importer reads: an item and what belongs to it."""
        try:
            items = [self._items[key] for key in self._parts[part]]
        except KeyError:
            raise Unavailable("The library changed while it was being read. Try again.") from None
        items.sort(key=lambda item: item["data"].get("annotationSortIndex") or "")
        names = self._collections
        return orjson.dumps({"group": self._group, "collections": names, "items": items})


def _is_web(address: str) -> bool:
    return urlsplit(address).scheme in ("http", "https")


def _open(source: SourceSettings) -> Connector:
    return WebLibrary(source) if _is_web(source.address) else Library(source)


def _check(address: str) -> str:
    if _is_web(address):
        if not _PATH.fullmatch(urlsplit(web.check(address)).path):
            raise InvalidRequest(
                f"{address!r} is not the address of a library. Write "
                "https://api.zotero.org/users/NUMBER or …/groups/NUMBER; zotero.org/settings/keys "
                "shows your user ID."
            )
        return address
    path = Path(address).expanduser().absolute()
    path = path / NAME if path.is_dir() else path
    if not path.is_file():
        raise InvalidRequest(
            f"{path} does not exist. Zotero shows its data directory in its settings."
        )
    return str(path)


KIND = Kind("zotero", _open, _check, needs_secret=lambda url: urlsplit(url).scheme == "https")
