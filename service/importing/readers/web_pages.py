"""Reads HTML pages and the chapters of EPUB books. Nothing that they refer to is loaded."""

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath
from typing import Any, Final
from urllib.parse import unquote
from zipfile import ZipFile

from evidence.errors import InvalidRequest
from service.importing.charsets import decode
from service.importing.readers.office import Document, Part, first, xml
from service.importing.rows import html_tree, text_of

_CHARSET = re.compile(rb"""<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding) *= *["']?([\w-]+)""")
_HEAD_BYTES: Final = 2_048
#: The most headings of a page that begin a part.
_HEADINGS: Final = 2_000
_MODIFIED: Final = ("article:modified_time", "dcterms.modified", "last-modified")


def charset(content: bytes) -> str | None:
    """The charset that a page declares."""
    match = _CHARSET.search(content[:_HEAD_BYTES].lower())
    return match[1].decode() if match else None


def _headings(tree: Any, *names: str) -> list[str]:
    elements = [] if tree is None else tree.iter(*names)
    texts = (" ".join(element.text_content().split()) for element in elements)
    return list(filter(None, texts))


def page(content: str) -> Document:
    """An HTML page; a part begins at each heading of the first two levels."""
    tree = html_tree(content)
    about: dict[str, Any] = {}
    if tree is not None:
        metas = [
            ((meta.get("name") or meta.get("property") or "").lower(), meta.get("content"))
            for meta in reversed(list(tree.iter("meta")))
        ]
        properties = dict(metas)
        about = {"title": tree.findtext(".//title"), "author": properties.get("author")}
        about["modified_at"] = next(filter(None, map(properties.get, _MODIFIED)), None)
    return Document(about, _sections(text_of(content), _headings(tree, "h1", "h2")[:_HEADINGS]))


def _sections(text: str, headings: list[str]) -> Iterator[Part]:
    """A text, cut before its headings."""
    lines, start, label = f"\n{text}", 0, "text"
    for heading in headings:
        at = lines.find(f"\n{heading}", start)
        if at >= 0:
            yield label, text[start:at]
            start, label = at, heading
    yield label, text[start:]


def book(archive: ZipFile) -> Document:
    """An EPUB book: its chapters in the order of reading."""
    names = set(archive.namelist())
    root = next(xml(archive, "META-INF/container.xml").iter("{*}rootfile"), None)
    package = "" if root is None else str(root.get("full-path"))
    described = xml(archive, package)
    files = {
        element.get("id"): normpath(join(dirname(package), unquote(str(element.get("href")))))
        for element in described.iter("{*}item")
    }
    order = [files.get(element.get("idref")) for element in described.iter("{*}itemref")]
    if "META-INF/encryption.xml" in names:
        locked = xml(archive, "META-INF/encryption.xml").iter("{*}CipherReference")
        if {unquote(str(element.get("URI"))) for element in locked} & {*order}:
            raise InvalidRequest("The chapters are encrypted. Import a copy without protection.")
    modified = (
        meta.text
        for meta in described.iter("{*}meta")
        if meta.get("property") == "dcterms:modified"
    )
    about = {"title": first(described, "title"), "author": first(described, "creator")}
    about["modified_at"] = next(modified, None)

    def parts() -> Iterator[Part]:
        chapters = (name for name in dict.fromkeys(order) if name in names)
        for number, name in enumerate(chapters, start=1):
            content = archive.read(str(name))
            text, _ = decode(content, charset(content) or "utf-8")
            heading = next(iter(_headings(html_tree(text), "h1", "h2", "h3")), "")
            yield heading or f"chapter {number}", text_of(text)

    return Document(about, parts())
