"""Rows of NDJSON: one JSON object a line."""

from collections.abc import Iterator

import orjson

from evidence.limits import BUDGETS
from service.importing.json_rows import row_of
from service.importing.source import Item, Source
from service.importing.text_repair import holds_nul
from service.records.intake import Row


def read(source: Source) -> Iterator[Item]:
    number, most = 0, BUDGETS.import_row_bytes
    while line := source.file.readline(most + 1):
        number += 1
        if len(line) > most:
            while line and not line.endswith(b"\n"):
                line = source.file.readline(most)
            yield number, f"The line is over {most} bytes; split the record."
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.isspace() and line:
            yield number, _parse_line(line)


def _parse_line(line: bytes) -> Row | str:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return f"This line is not JSON: {error}."
    if b"\\u0000" in line and holds_nul(value):
        return "The line holds a NUL character (\\u0000); take it out."
    return row_of(value)
