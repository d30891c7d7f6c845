"""Adds the journals of jrnl, a diary for the command line, to the formats of `rung import`.

A journal is a text: `[2026-03-03 21:05] The title.`, then lines until the next entry.
"""

import hashlib
import re
from collections.abc import Iterator

from service.importing.rows import stream
from service.importing.source import Format, Item, Source
from service.records.intake import Row

FIELDS = "id:id title:title text:text written_at:time tags:list"
BEGINS = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( [AP]M)?\] ")
TITLE = re.compile(r"\[(\d{4}-\d\d-\d\d) (\d\d:\d\d)[^]]*\] (.*)")


def read(source: Source) -> Iterator[Item]:
    """The entries of a journal, each with the line it begins on."""
    entry: tuple[int, re.Match[str], list[str]] | None = None
    for number, raw in enumerate(source.file, start=1):
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if found := TITLE.match(line):
            if entry:
                yield entry[0], _row(source, *entry[1:])
            entry = number, found, []
        elif entry:
            entry[2].append(line)
        elif line:
            yield number, "This line is before the first entry."
    if entry:
        yield entry[0], _row(source, *entry[1:])


def _row(source: Source, head: re.Match[str], lines: list[str]) -> Row:
    day, clock, title = head.groups()
    text = "\n".join(lines).strip()
    key = hashlib.sha256(f"{day} {clock} {title}".encode()).hexdigest()[:16]
    data = {"id": key, "title": title, "text": text, "written_at": f"{day}T{clock}:00"}
    data["tags"] = re.findall(r"(?<!\w)@(\w+)", f"{title}\n{text}")
    return Row(source.repair.value(data), stream="journal")


FORMAT = Format(
    "jrnl", (".jrnl",), BEGINS, read, {"streams": [stream("journal", FIELDS)]}, any_extension=True
)
