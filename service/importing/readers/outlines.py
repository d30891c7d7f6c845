"""OPML outlines: feeds and links become bookmarks; the rest becomes one note."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from evidence.errors import InvalidRequest
from service.importing.rows import row, stream
from service.importing.source import SAFE_XML, Format, Item, Source, titled
from service.records.intake import content_key

BOOKMARKS, NOTES = "bookmarks", "notes"
MANIFEST = {
    "streams": [
        stream(BOOKMARKS, "id:id title:title url:words folder:label description:text tags:list"),
        stream(NOTES, "id:id title:title folder:group text:text written_at:time"),
    ]
}
BEGINS = re.compile(rb"[^\x00]{0,300}?<opml[ >]")
#: The deepest outline, and the most characters of the note that is made of one.
_LEVELS: Final = 64
_NOTE_CHARS: Final = 4 << 20
_ADDRESSES: Final = ("htmlUrl", "url", "xmlUrl")


def read(source: Source) -> Iterator[Item]:
    """The links, with the path of their outlines; then the rest as an indented list."""
    from lxml.etree import XMLSyntaxError, iterparse

    number, plain, path, lines, length = 0, 0, list[str](), list[str](), 0
    linked = [False]  # whether each outline of the path, or one inside it, is a link
    events = iterparse(
        source.file,
        events=("start", "end"),
        tag="outline",
        **SAFE_XML,
    )
    try:
        for event, element in events:
            if event == "end":
                path.pop()
                link = linked.pop()
                linked[-1] |= link
                plain += not link
                element.clear()
                continue
            number += 1
            if len(path) >= _LEVELS:
                raise InvalidRequest(f"{source.name} is nested more than {_LEVELS} levels deep.")
            text = " ".join((element.get("text") or element.get("title") or "").split())
            url = next(filter(None, map(element.get, _ADDRESSES)), None)
            if url:
                yield number, row(source, BOOKMARKS, _link(element, url, text, path))
            elif text and length < _NOTE_CHARS:
                lines.append(f"{'  ' * len(path)}- {text}")
                length += len(lines[-1])
            path.append(text)
            linked.append(bool(url))
    except XMLSyntaxError as error:
        raise InvalidRequest(f"{source.name} is not valid XML: {error}.") from None
    if plain:
        key = source.tree.inside(source.name)
        note = {
            "id": content_key({"outline": key})[:32],
            "title": titled(PurePosixPath(source.name).stem),
            "text": "\n".join(lines),
        }
        yield number + 1, row(source, NOTES, note)


def _link(element: Any, url: str, text: str, path: list[str]) -> dict[str, Any]:
    folder = " / ".join(filter(None, path))
    tags = (element.get("category") or "").split(",")
    return {
        "id": content_key({"folder": folder, "url": url})[:32],
        "title": text,
        "url": url,
        "folder": folder,
        "description": element.get("description") or "",
        "tags": [tag.strip().strip("/") for tag in tags if tag.strip()],
    }


FORMAT = Format("opml", (".opml",), BEGINS, read, MANIFEST, any_extension=True)
