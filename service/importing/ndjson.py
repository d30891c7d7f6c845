"""Rows of NDJSON: one JSON object a line."""

import re
from collections.abc import Iterator

from evidence.limits import BUDGETS
from service.importing.encodings import as_utf_8
from service.importing.exact_json import loads
from service.importing.json_rows import row_of
from service.importing.source import Format, Item, Source
from service.importing.text_repair import Repair
from service.records.intake import Row


def read(source: Source) -> Iterator[Item]:
    file = as_utf_8(source)
    number, most = 0, BUDGETS.import_row_bytes
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            while line and not line.endswith(b"\n"):
                line = file.readline(most)
            yield number, f"The line is over {most} bytes; split the record."
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.isspace() and line:
            yield number, _parse_line(line, source.repair)


def _parse_line(line: bytes, repair: Repair) -> Row | str:
    try:
        value = loads(line)
    except ValueError as error:
        return f"This line is not JSON: {error}."
    if b"\\u0000" in line:
        value = repair.value(value)
    return row_of(value)


FORMAT = Format("ndjson", (".ndjson", ".jsonl"), re.compile(rb"\s*\{.*\}\s*(\n|$)"), read)
