"""Rows of NDJSON: one JSON object a line."""

import re
from collections.abc import Iterator

from evidence.limits import BUDGETS
from service.importing.encodings import as_text
from service.importing.exact_json import parsed
from service.importing.source import Format, Item, Source
from service.importing.text_repair import Undecodable


def read(source: Source) -> Iterator[Item]:
    number, most = 0, BUDGETS.import_row_bytes
    with as_text(source) as text:
        while line := text.readline(most + 1):
            number += 1
            if len(line) > most:
                while line and not line.endswith("\n"):
                    line = text.readline(most)
                yield number, f"The line is over {most} bytes; split the record."
            elif not line.isspace():
                try:
                    yield number, parsed(
                        source.repair.decoded(line).encode(), source.repair, "line"
                    )
                except Undecodable as error:
                    yield number, f"{error}."


FORMAT = Format("ndjson", (".ndjson", ".jsonl"), re.compile(rb"\s*\{.*\}\s*(\n|$)"), read)
