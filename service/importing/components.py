"""Splits calendars and address books into their components, one in memory at a time."""

from collections.abc import Iterator
from typing import BinaryIO

from service.importing.texts import decode


def components(file: BinaryIO, outer: str = "") -> Iterator[tuple[int, str, str]]:
    """(line, name, text) of each component inside `outer`; lines outside one are named ""."""
    lines: list[bytes] = []
    name, start = "", 0
    for number, line in enumerate(file, start=1):
        word = line.strip().removeprefix(b"\xef\xbb\xbf").decode("latin-1").upper()
        if not name and word.startswith("BEGIN:") and word != f"BEGIN:{outer}":
            name, start = word.removeprefix("BEGIN:"), number
        if name:
            lines.append(line)
        elif word and word != f"BEGIN:{outer}" and word != f"END:{outer}":
            yield number, "", decode(line.strip())[0]
        if name and word == f"END:{name}":
            yield start, name, decode(b"".join(lines))[0]
            lines, name = [], ""
    if name:
        yield start, "cut", f"This {name} has no end: the file is cut off."
