"""The formats that can be imported: those of our modules, and those of other packages."""

import re
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path

from evidence.errors import InvalidRequest
from service.importing import bookmarks, calendar, chatgpt, claude, contacts, csv_table
from service.importing import json_array, mbox, ndjson, notes, slack, sqlite_tables, unreadable
from service.importing import whatsapp, workbook
from service.importing.source import Format

#: A file has the first format that matches it.
FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        *(whatsapp.FORMAT, chatgpt.FORMAT, claude.FORMAT, slack.FORMAT, bookmarks.FORMAT),
        *(workbook.FORMAT, ndjson.FORMAT, json_array.FORMAT, mbox.MBOX, mbox.EML),
        *(calendar.FORMAT, contacts.FORMAT, sqlite_tables.FORMAT, notes.FORMAT),
        *(csv_table.TSV, csv_table.CSV),
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
    """The format of a file: by its first bytes if any extension will do, else by its extension.

    An unknown extension is read as a similar one. `-`, standard input, is NDJSON. Raises
    InvalidRequest that describes the file.
    """
    if name == "-":
        return STANDARD_INPUT
    text = _MARKS.sub(b"", head)
    for format in FORMATS.values():
        if format.any_extension and format.begins.match(text):
            return format.name
    suffix = Path(name).suffix.lower()
    known = None if suffix in MARKUP else unreadable.looks_like(head)
    if suffix in _SUFFIXES and known is None:
        fit = (one for one in FORMATS.values() if one.begins.match(text))
        sorts = (one.name for one in fit if not one.untyped or _is_table(text))
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
