"""The formats that Rung and other packages can import, and how each format is detected."""

import re
import tomllib
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from evidence.errors import InvalidRequest
from service.importing.readers import assistants, bookmarks, calendars_and_cards, chats_in_json
from service.importing.readers import documents, evernote, imessage, json_files, mbox
from service.importing.readers import messengers, notes, outlines, qif, references
from service.importing.readers import sqlite_tables, statements, tables, takeout, twitter, zotero
from service.importing.source import Format
from service.importing.tree import ZIP

#: The first format that matches a file is used.
FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        *(
            messengers.WHATSAPP,
            assistants.DEEPSEEK,
            assistants.CHATGPT,
            assistants.CLAUDE,
            messengers.SLACK,
        ),
        *(chats_in_json.TELEGRAM, chats_in_json.MESSENGER, twitter.FORMAT),
        *(takeout.MY_ACTIVITY, takeout.CHAT),
        *(bookmarks.BACKUP, notes.KEEP, evernote.FORMAT, outlines.FORMAT, qif.FORMAT),
        *(references.BIBTEX, references.RIS, statements.MT940, statements.CAMT),
        *(
            bookmarks.FORMAT,
            *documents.FORMATS,
            tables.XLSX,
            json_files.NDJSON,
            json_files.JSON,
            mbox.MBOX,
            mbox.EML,
            mbox.MSG,
        ),
        *(calendars_and_cards.ICS, calendars_and_cards.VCARD, sqlite_tables.FORMAT, notes.FORMAT),
        *(tables.TSV, tables.CSV, zotero.FORMAT, imessage.FORMAT),
    )
}
#: The entry points with which other packages add formats, and why some cannot be used.
GROUP = "rung.formats"
UNUSABLE: list[str] = []


def _plugin_formats() -> dict[str, Format]:
    """The formats of other packages; they are tried before ours, but none replaces one of ours."""
    formats = {}
    for point in entry_points(group=GROUP):
        owner = point.dist.name if point.dist else point.module
        try:
            format = point.load()
            if not isinstance(format, Format):
                raise TypeError(f"{point.value} is not a Format")
            if format.name in FORMATS or format.name != point.name:
                raise ValueError(
                    f"its name is already in use, or differs from the entry point {point.name}"
                )
            formats[format.name] = format
        except Exception as error:  # our formats must work whatever another package does
            what = f"The format {point.name!r} of {owner} cannot be used: {error}."
            UNUSABLE.append(f"{what} Update or uninstall that package.")
    return formats


FORMATS = _plugin_formats() | FORMATS
STANDARD_INPUT = "ndjson"
#: Extensions of texts that may begin like an HTML page, and of texts in any format.
MARKUP = (".md", ".markdown")
PLAIN = (".txt", ".text")
DELIMITERS = (b"\t", b";", b"|", b",")
_SUFFIXES = {suffix: format.name for format in FORMATS.values() for suffix in format.extensions}
_MARKS = re.compile(rb"^(\xef\xbb\xbf|\xff\xfe|\xfe\xff)|\0")


def detect(name: str, head: bytes = b"") -> str:
    """The format of a file: by its first bytes if any extension is allowed, else by extension.

    An unknown extension is read as a similar one. `-`, standard input, is NDJSON. Raises an
    InvalidRequest that describes the file.
    """
    if name == "-":
        return STANDARD_INPUT
    text = _MARKS.sub(b"", head)
    for format in FORMATS.values():
        if format.any_extension and format.begins.match(text):
            return format.name
    suffix = Path(name).suffix.lower()
    by_suffix = FORMATS.get(_SUFFIXES.get(suffix, ""))
    if by_suffix and by_suffix.last and (by_suffix.begins.match(text) or head.startswith(ZIP)):
        return by_suffix.name
    if by_suffix and by_suffix.requires and by_suffix.begins.match(text):
        return by_suffix.name
    if by_suffix is json_files.NDJSON and json_files.is_document(text):
        return json_files.JSON.name
    description = None if suffix in MARKUP else looks_like(head)
    if suffix in _SUFFIXES and description is None:
        fit = (format for format in FORMATS.values() if format.begins.match(text))
        sorts = (format.name for format in fit if not format.untyped or _is_table(text))
        return next(sorts, _SUFFIXES[suffix]) if suffix in PLAIN else _SUFFIXES[suffix]
    if description is None:
        texts = [ending for ending, form in _SUFFIXES.items() if not FORMATS[form].last]
        longer = [ending for ending in texts if ending.startswith(suffix) and len(suffix) > 2]
        near = longer or get_close_matches(suffix, texts, 1, 0.7)
        if near and (not text or FORMATS[_SUFFIXES[near[0]]].begins.match(text)):
            return _SUFFIXES[near[0]]
        for format in FORMATS.values():
            if text and format.begins.match(text):
                return format.name
    if description:
        raise InvalidRequest(f"{name} cannot be imported. It looks like {description}")
    names = "|".join(FORMATS)
    raise InvalidRequest(f"The format of {name!r} was not recognized. Add --format {names}.")


def _is_table(text: bytes) -> bool:
    """True if most of the first lines have as many delimiters as the first."""
    lines = text.splitlines()[:20]
    counts = [[line.count(mark) for line in lines] for mark in DELIMITERS]
    return len(lines) > 1 and any(
        marks[0] and marks.count(marks[0]) > len(marks) * 3 // 4 for marks in counts
    )


_UNREADABLE: Final = Path(__file__).with_name("unreadable.toml")
_MARK = re.compile(rb"^\xef\xbb\xbf|\xe2\x80[\x8e\x8f]")


@cache
def unreadable() -> list[tuple[re.Pattern[bytes], str]]:
    """Returns the files that cannot be imported: how each begins; what it is, and what to do."""
    return [
        (
            re.compile(file["begins"].encode(), re.DOTALL | re.IGNORECASE),
            f"{file['what']}. {file['advice']}",
        )
        for file in tomllib.loads(_UNREADABLE.read_text(encoding="utf-8"))["file"]
    ]


def looks_like(head: bytes) -> str | None:
    """What a file with these first bytes is, and what to do with it; None if unknown."""
    head = _MARK.sub(b"", head)
    return next((what for pattern, what in unreadable() if pattern.match(head)), None)


def connection_name(paths: tuple[str, ...]) -> str:
    """A proposed id for a connection, from the name of the first path."""
    if paths[0] == "-":
        raise InvalidRequest("Standard input has no name. Use --connection NAME.")
    name = Path(paths[0]).resolve().name
    while (stem := Path(name).stem) != name and Path(name).suffix[1:].isalnum():
        name = stem
    words = "".join(char if char.isalnum() or char in "._" else "-" for char in name.lower())
    return words.strip("-.") or "import"
