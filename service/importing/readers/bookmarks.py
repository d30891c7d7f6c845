"""Browser bookmarks and reading lists, in Netscape's HTML format and in JSON."""

import hashlib
import re
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from typing import Any, Final

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.importing.charsets import decode
from service.importing.json_values import loads
from service.importing.rows import row, stream, time_of
from service.importing.source import Format, Item, Source, as_text
from evidence.manifest.forms import decimal_in
from service.records.intake import Row

BOOKMARKS = "bookmarks"
MANIFEST = {
    "streams": [
        stream(
            BOOKMARKS,
            "id:id title:title url:words folder:label description:text tags:list"
            " keyword:label added_at:time changed_at:when",
        )
    ]
}
BEGINS = re.compile(
    rb"\s*<!DOCTYPE NETSCAPE-Bookmark-file|[^\x00]{0,2000}<title>Pocket Export", re.I
)
CHUNK_CHARS = 1 << 16


def read(source: Source) -> Iterator[Item]:
    """The bookmarks with the path of their folders."""
    page = _Page()
    with as_text(source, newline="") as text:
        while chunk := text.read(CHUNK_CHARS):
            page.feed(chunk)
            yield from _rows(source, page, page.bookmarks[:-1])
    page.close()
    yield from _rows(source, page, list(page.bookmarks))


def _rows(source: Source, page: "_Page", bookmarks: list[dict[str, Any]]) -> Iterator[Item]:
    del page.bookmarks[: len(bookmarks)]
    for bookmark in bookmarks:
        line = bookmark.pop("line")
        bookmark["description"] = bookmark.get("description", "").strip()
        yield line, partial(_bookmark, source, bookmark)


def _bookmark(source: Source, bookmark: dict[str, Any]) -> Row:
    identity = f"{bookmark['folder']}\n{bookmark['url']}"
    key = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return row(source, BOOKMARKS, bookmark | {"id": key})


class _Page(HTMLParser):
    """Collects the links of a page in `bookmarks`; the last one may be incomplete."""

    def __init__(self) -> None:
        super().__init__()
        self.bookmarks: list[dict[str, Any]] = []
        self._folders: list[str] = []
        self._heading = {"text": ""}
        self._into: tuple[dict[str, Any], str] | None = None

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Skips `<![`, which raises an AssertionError otherwise."""
        return self.parse_bogus_comment(i)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "dl":
            self._folders.append(self._heading["text"])
            self._heading = {"text": ""}
        elif tag in ("h1", "h3"):
            self._heading = {"text": ""}
            self._into = (self._heading, "text")
        elif tag == "a" and values.get("href"):
            bookmark = {
                "line": self.getpos()[0],
                "url": values["href"],
                "title": "",
                "folder": " / ".join(filter(None, [*self._folders[1:], self._heading["text"]])),
                "tags": [tag for tag in values.get("tags", "").split(",") if tag],
                "keyword": values.get("shortcuturl"),
                "added_at": time_of(values.get("add_date") or values.get("time_added")),
                "changed_at": time_of(values.get("last_modified")),
            }
            self.bookmarks.append(bookmark)
            self._into = (bookmark, "title")
        elif tag == "dd" and self.bookmarks:
            self._into = (self.bookmarks[-1], "description")
        elif tag == "dt":
            self._into = None

    def handle_endtag(self, tag: str) -> None:
        if tag == "dl" and self._folders:
            self._folders.pop()
        if tag in ("a", "h1", "h3", "dl"):
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            target, name = self._into
            target[name] = (target.get(name, "") + data).replace("\r\n", "\n").rstrip("\n")


FORMAT = Format("bookmarks", (), BEGINS, read, MANIFEST, any_extension=True)


_CHROME_EPOCH: Final = 11_644_473_600
_BACKUP: Final = re.compile(
    rb'\s*\{[^\x00]{0,400}?"(?:root"\s*:\s*"placesRoot|roots"\s*:\s*\{\s*"bookmark_bar)"'
)


def read_backup(source: Source) -> Iterator[Item]:
    """The bookmarks of a backup of Firefox, or of the file in which Chrome keeps them."""
    content = source.file.read(BUDGETS.import_row_bytes)
    try:
        data = loads(decode(content)[0].encode())
    except ValueError as error:
        raise InvalidRequest(f"{source.name} is not JSON: {error}.") from None
    roots = data.get("roots") or data
    tops = list(roots.values()) if roots is not data and isinstance(roots, dict) else [data]
    waiting = [(top, "") for top in reversed(tops) if isinstance(top, dict)]
    number = 0
    while waiting:
        node, folder = waiting.pop()
        if isinstance(url := node.get("uri") or node.get("url"), str):
            number += 1
            yield number, partial(_node, source, node, url, folder)
        children = node.get("children")
        if isinstance(children, list):
            title = str(node.get("title") or node.get("name") or "")
            inner = " / ".join(filter(None, [folder, title]))
            waiting += [(child, inner) for child in reversed(children) if isinstance(child, dict)]


def _node(source: Source, node: dict[str, Any], url: str, folder: str) -> Row:
    tags = node.get("tags")
    bookmark = {
        "url": url,
        "title": str(node.get("title") or node.get("name") or ""),
        "folder": folder,
        "tags": tags.split(",") if isinstance(tags, str) else [],
        "keyword": node.get("keyword"),
        "added_at": _node_time(node, "dateAdded", "date_added"),
        "changed_at": _node_time(node, "lastModified", "date_modified"),
    }
    return _bookmark(source, bookmark)


def _node_time(node: dict[str, Any], firefox: str, chrome: str) -> str | None:
    """The time of a node in microseconds: since 1970 in Firefox, since 1601 in Chrome."""
    value = node.get(firefox) or node.get(chrome)
    micros = decimal_in(str(value)) if value else None
    if micros is None:
        return None
    return time_of(str(micros / 1_000_000 - (0 if node.get(firefox) else _CHROME_EPOCH)))


BACKUP = Format("bookmarks-json", (), _BACKUP, read_backup, MANIFEST, any_extension=True)
