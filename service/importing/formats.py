"""The formats that can be imported: one row each, with the reader that its module provides."""

import re
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path

from evidence.errors import InvalidRequest
from service.importing import bookmarks, calendar, chat, chatgpt, claude, contacts, csv_table
from service.importing import json_array, mbox, ndjson, notes, slack, sqlite_tables, unreadable
from service.importing import whatsapp, workbook
from service.importing.source import Format

#: The beginning of a format that is a folder.
NOTHING = re.compile(rb"(?!)")
#: A file has the first format that matches it.
FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        Format("whatsapp", (), whatsapp.BEGINS, whatsapp.read, chat.MANIFEST, sure=True),
        Format("chatgpt", (), chatgpt.BEGINS, chatgpt.read, chat.MANIFEST, sure=True),
        Format("claude", (), claude.BEGINS, claude.read, chat.MANIFEST, sure=True),
        Format("slack", (), NOTHING, slack.read, chat.MANIFEST, folder=slack.FOLDER),
        Format("bookmarks", (), bookmarks.BEGINS, bookmarks.read, bookmarks.MANIFEST, sure=True),
        Format("xlsx", workbook.SUFFIXES, workbook.BEGINS, workbook.read, written=True, sure=True),
        Format("ndjson", (".ndjson", ".jsonl"), re.compile(rb"\s*\{.*\}\s*(\n|$)"), ndjson.read),
        Format("json", (".json",), re.compile(rb'\s*(\{\s*["}]|\[\s*[{\]])'), json_array.read),
        Format("mbox", (".mbox", ".mbx"), mbox.BEGINS, mbox.read, mbox.MANIFEST),
        Format("eml", (".eml",), mbox.HEADERS, mbox.read_message, mbox.MANIFEST),
        Format(
            "ics", (".ics", ".ical"), calendar.BEGINS, calendar.read, calendar.MANIFEST, sure=True
        ),
        Format("vcard", (".vcf",), contacts.BEGINS, contacts.read, contacts.MANIFEST, sure=True),
        Format(
            "sqlite",
            (".sqlite", ".sqlite3", ".db"),
            re.compile(rb"SQLite format 3"),
            sqlite_tables.read,
            sqlite_tables.manifest,
            sure=True,
        ),
        Format("notes", notes.SUFFIXES, notes.BEGINS, notes.read, notes.MANIFEST),
        Format("tsv", (".tsv", ".tab"), re.compile(rb".+\t"), csv_table.read, written=True),
        Format("csv", (".csv",), re.compile(rb".+[,;|]"), csv_table.read, written=True),
    )
}
#: The entry points by which other packages add formats, and why some cannot be used.
GROUP = "rung.formats"
UNUSABLE: list[str] = []


def _of_other_packages() -> dict[str, Format]:
    """The formats of other packages; they come before ours, but none replaces one of ours."""
    found = {}
    for point in entry_points(group=GROUP):
        owner = point.dist.name if point.dist else point.module
        try:
            format = point.load()
            if not isinstance(format, Format):
                raise TypeError(f"{point.value} is not a Format")
            if format.name in FORMATS or format.name != point.name:
                raise ValueError(
                    f"its name is already used, or is not that of the entry point {point.name}"
                )
            found[format.name] = format
        except Exception as error:  # whatever another package does, ours work
            what = f"The format {point.name!r} of {owner} cannot be used: {error}."
            UNUSABLE.append(f"{what} Update or uninstall that package.")
    return found


FORMATS = _of_other_packages() | FORMATS
STANDARD_INPUT = "ndjson"
#: Extensions of texts that may begin as a page does, and of texts of any format.
MARKUP = (".md", ".markdown")
PLAIN = (".txt", ".text")
DELIMITERS = (b"\t", b";", b"|", b",")
_SUFFIXES = {suffix: format.name for format in FORMATS.values() for suffix in format.extensions}
_MARKS = re.compile(rb"^(\xef\xbb\xbf|\xff\xfe|\xfe\xff)|\0")


def detect(name: str, head: bytes = b"") -> str:
    """The format of a file: a sure one by its first bytes, else by its extension or a similar one.

    `-`, standard input, is NDJSON. Raises InvalidRequest that describes the file.
    """
    if name == "-":
        return STANDARD_INPUT
    text = _MARKS.sub(b"", head)
    for format in FORMATS.values():
        if format.sure and format.begins.match(text):
            return format.name
    suffix = Path(name).suffix.lower()
    known = None if suffix in MARKUP else unreadable.looks_like(head)
    if suffix in _SUFFIXES and known is None:
        fit = (one for one in FORMATS.values() if one.begins.match(text))
        sorts = (one.name for one in fit if not one.written or _is_table(text))
        return next(sorts, _SUFFIXES[suffix]) if suffix in PLAIN else _SUFFIXES[suffix]
    if known is None and suffix:
        longer = [one for one in _SUFFIXES if one.startswith(suffix) and len(suffix) > 2]
        near = longer or get_close_matches(suffix, _SUFFIXES, 1, 0.7)
        if near:
            return _SUFFIXES[near[0]]
    if known is None and text:
        for format in FORMATS.values():
            if format.begins.match(text):
                return format.name
    advice = f" This looks like {known}" if known else ""
    raise InvalidRequest(
        f"Cannot tell the format of {name!r}.{advice} Give one: --format {'|'.join(FORMATS)}."
        if known is None
        else f"{name} cannot be read.{advice}"
    )


def _is_table(text: bytes) -> bool:
    """True if most of the first lines have as many delimiters as the first."""
    lines = text.splitlines()[:20]
    counts = [[line.count(mark) for line in lines] for mark in DELIMITERS]
    return len(lines) > 1 and any(
        one[0] and one.count(one[0]) > len(one) * 3 // 4 for one in counts
    )
