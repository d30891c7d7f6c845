"""Rows of NDJSON: one JSON object a line."""

import re
from collections.abc import Iterator

from evidence.limits import BUDGETS
from service.importing.encodings import as_utf_8
from service.importing.json_rows import parsed
from service.importing.source import Format, Item, Source


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
            yield number, parsed(line, source.repair, "line")


FORMAT = Format("ndjson", (".ndjson", ".jsonl"), re.compile(rb"\s*\{.*\}\s*(\n|$)"), read)
