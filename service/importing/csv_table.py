"""Rows of CSV and TSV tables. Delimiter, quotes and header are detected; every cell is text."""

import csv
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from evidence.limits import BUDGETS
from service.importing.encodings import as_text
from service.importing.source import Format, Item, Source
from service.importing.table_rows import HEAD_LINES, rows_of

DELIMITERS: Final = (",", ";", "\t", "|")
#: The characters examined for delimiter and header.
HEAD_CHARS = 8_192
#: The first line of some files that Excel writes.
_HINT: Final = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)


def read(source: Source) -> Iterator[Item]:
    """The rows of a table, with the names of its columns from its header."""
    csv.field_size_limit(BUDGETS.import_row_bytes)
    with as_text(source, newline="") as text:
        lines = iter(text)
        head = list(islice(lines, HEAD_LINES))
        hint = _HINT.fullmatch(head[0]) if head else None
        given = source.reading.delimiter or ("\t" if source.format == "tsv" else hint and hint[1])
        dialect = _dialect("".join(head[bool(hint) :])[:HEAD_CHARS], given)
        source.comma = False if dialect.delimiter == "," else None
        reader = csv.reader(chain(head[bool(hint) :], lines), dialect)
        numbered = ((reader.line_num, cells) for cells in reader if cells)
        try:
            yield from rows_of(source, numbered)
        except csv.Error as error:
            yield reader.line_num, f"Reading stopped here: {error}. Check the quotes of this line."


def _dialect(sample: str, delimiter: str | None) -> type[csv.Dialect]:
    """The delimiter and quotes, by clevercsv, which looks for clean columns."""
    from clevercsv.detect import Detector  # imported for tables only

    sample = sample.encode("utf-8", "replace").decode().replace("\0", "?")
    dialect = Detector().detect(sample, delimiters=[delimiter] if delimiter else list(DELIMITERS))

    class Dialect(csv.excel):
        quotechar = (dialect and dialect.quotechar) or '"'
        escapechar = (dialect and dialect.escapechar) or None

    Dialect.delimiter = delimiter or (dialect and dialect.delimiter) or ","
    return Dialect


TSV = Format("tsv", (".tsv", ".tab"), re.compile(rb".+\t"), read, untyped=True)
CSV = Format("csv", (".csv",), re.compile(rb".+[,;|]"), read, untyped=True)
