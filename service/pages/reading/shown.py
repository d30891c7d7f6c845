"""Values for the reading pages: pieces of marked text, times, people and addresses."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

from flask import request

from evidence.errors import InvalidRequest
from evidence.model import Continuation
from evidence.papers import BY_KEYWORD, FACETS, METADATA, SEARCH, SOURCE, SUMMARY
from evidence.text import clip, escape, json_line
from evidence.values import PLAIN, Preview, text_of
from service.pages import session_path

PATH: Final = "/read"
PAPERS_PATH, PAPER_PATH, BLOB_PATH = f"{PATH}/papers", f"{PATH}/paper", f"{PATH}/blob"
#: The characters of a text on one page. As HTML they may take eight times as many bytes.
PART_CHARS: Final = 6_000
VALUE_CHARS: Final = 160
_NAMES: Final = {
    "query": "q",
    "connection_id": "source",
    "streams": "stream",
    "paper_id": "id",
    "offset_chars": "offset",
}
#: Arguments that the pages set themselves.
_SIZES: Final = ("limit", "max_chars", "outline")
_PAPER_PATHS: Final = {
    **{SEARCH: PAPERS_PATH, BY_KEYWORD: PAPERS_PATH, FACETS: PAPERS_PATH},
    **{METADATA: PAPER_PATH, SUMMARY: PAPER_PATH, SOURCE: PAPER_PATH},
}
#: The formats of previews, by their first bytes.
_IMAGES: Final = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF....WEBP",
}
MAGIC_BYTES: Final = 16
_MIDNIGHT: Final = re.compile(r".{10}(T00:00(:00(\.0+)?)?(Z|\+00:00)?)?")
_PARAGRAPH: Final = re.compile(r"\n[ \t]*\n\s*")

Pieces = list[tuple[bool, str]]


def pieces(excerpt: str) -> Pieces:
    """(whether it is marked, text) for the parts of an excerpt from `evidence.text.mark`."""
    parts = re.split("</?mark>", excerpt)
    return [(position % 2 == 1, part) for position, part in enumerate(parts) if part]


def paragraphs(text: str, marked: tuple[int, int] | None = None) -> list[Pieces]:
    """A text as paragraphs of pieces; `marked` is the range of a match in it."""
    start, end = marked or (len(text), len(text))
    parsed: list[Pieces] = [[]]
    for is_match, part in ((False, text[:start]), (True, text[start:end]), (False, text[end:])):
        first, *following = _PARAGRAPH.split(part.replace("\r\n", "\n"))
        parsed[-1].append((is_match, escape(first)[0]))
        parsed += [[(is_match, escape(paragraph)[0])] for paragraph in following]
    nonempty = ([part for part in paragraph if part[1]] for paragraph in parsed)
    return [paragraph for paragraph in nonempty if any(text.strip() for _, text in paragraph)]


def when(text: str) -> str:
    """A time as people write it, such as `24 Dec 2025, 21:37 UTC`; other text unchanged."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return clip(text, VALUE_CHARS)
    day = f"{at.day} {at:%b} {at.year}"
    if _MIDNIGHT.fullmatch(text):
        return day
    return f"{day}, {at:%H:%M} {at.tzname() or ''}".rstrip()


def plain(value: Any) -> str:
    """A value of a field as one line of text."""
    if isinstance(value, Preview):
        return plain(value.text)
    if isinstance(value, list) and all(
        type(element) in PLAIN and not isinstance(element, dict) for element in value
    ):
        value = ", ".join(map(str, value))
    if isinstance(value, dict):  # a person, or another object
        name = value.get("name") or value.get("email") or value.get("address")
        value = name if isinstance(name, str) else json_line(value)
    return clip(text_of(value), VALUE_CHARS)


def record(id: str, **query: Any) -> str:
    """The address of a record's page, at the first match if there is a query."""
    path = _inside(f"{PATH}/{quote(id, safe='/:')}", query)
    return f"{path}#match" if query.get("q") else path


def address(call: Continuation) -> str:
    """The address of the page that shows the answer of a search or of a call on papers."""
    path = _PAPER_PATHS.get(call.operation, PATH)
    args = {
        _NAMES.get(name, name): argument[0] if isinstance(argument, list) else argument
        for name, argument in call.args.items()
        if name not in _SIZES
    }
    return _inside(path, args | ({"text": "source"} if call.operation == SOURCE else {}))


def paper(paper_id: str, operation: str = SOURCE, **args: Any) -> str:
    """The address of a paper's page, or of one of its texts."""
    return address(Continuation(operation, {"paper_id": paper_id, **args}, "read"))


def search(**query: Any) -> str:
    """The address of a search or of a list."""
    return _inside(PATH, query)


def listing(stream: str, connection_id: str | None) -> str:
    """The address of the records of a stream."""
    return search(stream=stream, source=connection_id)


def blob(blob_id: str, connection_id: str | None, **query: Any) -> str:
    """The address of the bytes of an attachment."""
    return _inside(BLOB_PATH, {"blob": blob_id, "source": connection_id, **query})


def image_type(start: bytes) -> str | None:
    """The media type of an image of which a browser runs no part, by its first bytes."""
    return next((name for name, magic in _IMAGES.items() if re.match(magic, start, re.S)), None)


def trial(call: Continuation) -> str:
    """The address of `/try` with a call filled in."""
    return _with("/try", {"tool": call.operation, "arguments": json_line(call.args)})


def _inside(path: str, query: Mapping[str, Any]) -> str:
    """An address below the path of this request's session."""
    return session_path.current() + _with(path, query)


def _with(path: str, query: Mapping[str, Any]) -> str:
    arguments = {name: value for name, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(arguments)}" if arguments else path


def parameters(*names: str) -> dict[str, str]:
    """The named parameters of this request, empty if it has none."""
    return {name: request.args.get(name, "").strip() for name in names}


def number(name: str, default: int) -> int:
    """A parameter that is a whole number; raises `InvalidRequest`."""
    text = request.args.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise InvalidRequest(f"{name} is not a whole number. Remove it from the address.")
    return int(text)


FILTERS: Final = {
    **{"pieces": pieces, "when": when, "plain": plain, "address": address, "trial": trial},
    **{"json_line": json_line, "paper": paper, "listing": listing},
}
