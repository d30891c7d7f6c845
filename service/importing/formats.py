"""Reading rows from files: NDJSON, JSON, CSV and TSV here, mbox in mbox.py.

Every reader yields (line number, row), or (line number, message) for what cannot be taken in.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from evidence.errors import InvalidRequest, TooLarge
from service.records.intake import Row
from service.importing.mbox import read_mbox
from service.importing.text_repair import Repair, holds_nul

LINE_BYTES = 268_435_456
FILE_BYTES = 1_073_741_824
SAMPLE_ROWS = 1_000
CSV_FIELD_CHARS = 268_435_456

Item = tuple[int, Row | str]

EXTENSIONS = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".mbox": "mbox",
    ".mbx": "mbox",
}
FORMATS = ("ndjson", "json", "csv", "tsv", "mbox")

_INGEST_WORDS = frozenset({"key", "data", "emitted_at", "stream", "op"})
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False}


@dataclass(slots=True)
class Source:
    """A file being read: its name, its format, and the repairs made to its text."""

    name: str
    format: str
    file: BinaryIO
    repair: Repair

    @property
    def folder(self) -> str:
        """The file's name without folder and extension."""
        return Path(self.name).stem


def detect(name: str) -> str:
    """The format a file's extension stands for; `-`, standard input, is taken for NDJSON."""
    if name == "-":
        return "ndjson"
    suffix = Path(name).suffix.lower()
    if suffix not in EXTENSIONS:
        raise InvalidRequest(
            f"Cannot tell the format of {name!r}. Give one: --format {'|'.join(FORMATS)}."
        )
    return EXTENSIONS[suffix]


def read_rows(source: Source) -> Iterator[Item]:
    """The rows of a source, in its own order."""
    return READERS[source.format](source)


def _read_ndjson(source: Source) -> Iterator[Item]:
    number = 0
    while line := source.file.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = source.file.readline(LINE_BYTES)
            yield number, f"The line is over {LINE_BYTES} bytes; split the record."
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
    return _row(value)


def _row(value: Any) -> Row | str:
    """A row from a JSON value: PDPP's ingest form, or the plain record."""
    if not isinstance(value, dict):
        return "A record must be a JSON object."
    if not _is_ingest_form(value):
        return Row(data=value)
    data, op = value.get("data"), value.get("op")
    if op not in (None, "upsert", "put", "delete"):
        return f'"op" is {op!r}; it may be "delete", or be left out.'
    if data is None and op == "delete":
        data = {}
    if not isinstance(data, dict):
        return '"data" must be an object.'
    for name in ("emitted_at", "stream"):
        if not isinstance(value.get(name), (str, type(None))):
            return f'"{name}" must be a string.'
    return Row(data, value.get("key"), value.get("emitted_at"), value.get("stream"), op == "delete")


def _is_ingest_form(value: dict[str, Any]) -> bool:
    if not value.keys() <= _INGEST_WORDS or value.keys() <= {"data"}:
        return False
    return isinstance(value.get("data"), dict) or value.get("op") == "delete"


def _read_json(source: Source) -> Iterator[Item]:
    content = source.file.read(FILE_BYTES + 1)
    if len(content) > FILE_BYTES:
        raise TooLarge(
            f"{source.name} is over {FILE_BYTES} bytes, too large to be read as one JSON value. "
            "Convert it to NDJSON, one record a line."
        )
    try:
        document = orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        hint = " Its first line is: try --format ndjson." if _starts_with_object(content) else ""
        raise InvalidRequest(f"{source.name} is not JSON: {error}.{hint}") from None
    if b"\\u0000" in content:
        document = source.repair.value(document)
    del content
    for number, value in enumerate(_find_array(source.name, document), start=1):
        yield number, _row(value)


def _starts_with_object(content: bytes) -> bool:
    try:
        return isinstance(orjson.loads(content.split(b"\n", 1)[0]), dict)
    except orjson.JSONDecodeError:
        return False


def _find_array(name: str, document: Any) -> list[Any]:
    if isinstance(document, list):
        return document
    if isinstance(document, dict):
        arrays = [value for value in document.values() if isinstance(value, list)]
        if len(arrays) == 1:
            return arrays[0]
    raise InvalidRequest(
        f"{name} must hold an array of objects, or an object with exactly one array. "
        "Take the array out, for example with: jq -c '.items[]' FILE | rung import -"
    )


def _read_csv(source: Source) -> Iterator[Item]:
    csv.field_size_limit(CSV_FIELD_CHARS)
    text = io.TextIOWrapper(source.file, "utf-8-sig", errors="surrogateescape", newline="")
    lines = csv.reader(
        (source.repair.text(line) for line in text),
        delimiter="\t" if source.format == "tsv" else ",",
    )
    try:
        yield from _read_table(lines)
    except csv.Error as error:
        yield lines.line_num, f"Reading stopped here: {error}. Check the quotes of this line."
    finally:
        text.detach()


def _read_table(lines: Any) -> Iterator[Item]:
    header = next(lines, None)
    if header is None:
        return
    for name in header:
        if header.count(name) > 1:
            raise InvalidRequest(f"The header names the column {name!r} twice; rename one.")
    numbered = ((lines.line_num, cells) for cells in lines if cells)
    sample = list(islice(numbered, SAMPLE_ROWS))
    readers = [_column_reader([c[i] for _, c in sample if i < len(c)]) for i in range(len(header))]
    for number, cells in chain(sample, numbered):
        if len(cells) != len(header):
            yield number, f"This row has {len(cells)} cells, the header has {len(header)}."
            continue
        yield number, Row({n: read(cell) for n, read, cell in zip(header, readers, cells)})


def _column_reader(sample: list[str]) -> Callable[[str], Any]:
    """How the cells of a column are read: as a number or boolean only if the whole sample is."""
    filled = [cell for cell in sample if cell]
    if filled and all(_INTEGER.fullmatch(cell) for cell in filled):
        return lambda cell: int(cell) if _INTEGER.fullmatch(cell) else cell or None
    if filled and all(_NUMBER.fullmatch(cell) for cell in filled):
        return lambda cell: float(cell) if _NUMBER.fullmatch(cell) else cell or None
    if filled and all(cell.lower() in _BOOLEANS for cell in filled):
        return lambda cell: _BOOLEANS.get(cell.lower(), cell or None)
    return str


def _read_mbox(source: Source) -> Iterator[Item]:
    return read_mbox(source.file, folder=source.folder, repair=source.repair)


READERS: dict[str, Callable[[Source], Iterator[Item]]] = {
    "ndjson": _read_ndjson,
    "json": _read_json,
    "csv": _read_csv,
    "tsv": _read_csv,
    "mbox": _read_mbox,
}
