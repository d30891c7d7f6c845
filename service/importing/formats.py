"""The formats that can be imported: one row each, with the reader that its module provides."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.errors import InvalidRequest
from service.importing import csv_table, json_array, mbox, ndjson
from service.importing.source import Item, Source


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, its file extensions, and what reads its rows.

    `manifest` declares its streams if they are always the same; the others are inferred.
    """

    name: str
    extensions: tuple[str, ...]
    read: Callable[[Source], Iterator[Item]]
    manifest: dict[str, Any] | None = None


FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        Format("ndjson", (".ndjson", ".jsonl"), ndjson.read),
        Format("json", (".json",), json_array.read),
        Format("csv", (".csv",), csv_table.read_csv),
        Format("tsv", (".tsv", ".tab"), csv_table.read_tsv),
        Format("mbox", (".mbox", ".mbx"), mbox.read, mbox.MANIFEST),
    )
}
STANDARD_INPUT = "ndjson"


def detect(name: str) -> str:
    """The format of a file's extension; `-`, standard input, is NDJSON."""
    if name == "-":
        return STANDARD_INPUT
    suffix = Path(name).suffix.lower()
    for format in FORMATS.values():
        if suffix in format.extensions:
            return format.name
    raise InvalidRequest(
        f"Cannot tell the format of {name!r}. Give one: --format {'|'.join(FORMATS)}."
    )
