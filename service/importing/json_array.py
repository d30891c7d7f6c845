"""Rows of one JSON document: an array of objects, or an object that holds such arrays.

Several arrays beside each other are several streams. An object without one is a record.
"""

import re
from collections.abc import Iterator
from typing import Any

from evidence.errors import InvalidRequest, TooLarge
from evidence.limits import BUDGETS
from service.importing.encodings import as_utf_8
from service.importing.exact_json import loads
from service.importing.json_rows import row_of
from service.importing.source import Format, Item, Source
from service.records.intake import Row


def read(source: Source) -> Iterator[Item]:
    """The rows of a document, with their numbers in it."""
    most = BUDGETS.import_json_bytes
    content = as_utf_8(source).read(most + 1)
    if len(content) > most:
        raise TooLarge(
            f"{source.name} is over {most} bytes, too large to be read as one JSON value. "
            "Convert it to NDJSON, one record a line."
        )
    try:
        document = loads(content.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        hint = " Its first line is: try --format ndjson." if _starts_with_object(content) else ""
        raise InvalidRequest(f"{source.name} is not JSON: {error}.{hint}") from None
    if b"\\u0000" in content:
        document = source.repair.value(document)
    del content
    number = 0
    for stream, values in _arrays(source, document).items():
        for value in values:
            number += 1
            row = row_of(value)
            if isinstance(row, Row) and row.stream is None:
                row = row._replace(stream=stream)
            yield number, row


def _starts_with_object(content: bytes) -> bool:
    try:
        return isinstance(loads(content.split(b"\n", 1)[0]), dict)
    except ValueError:
        return False


def _arrays(source: Source, document: Any) -> dict[str | None, list[Any]]:
    """The arrays of records in a document by their streams; None is the file's own."""
    if isinstance(document, list):
        return {None: document}
    if not isinstance(document, dict) or not document:
        raise InvalidRequest(
            f"{source.name} must hold an object or an array of objects. "
            "Take the array out, for example with: jq -c '.items[]' FILE | rung import -"
        )
    arrays = {
        name: value for name, value in document.items() if isinstance(value, list) and _rows(value)
    }
    inner = [value for value in document.values() if isinstance(value, dict)]
    if not arrays and len(inner) == 1 and _holds_rows(inner[0]):
        return _arrays(source, inner[0])
    if not arrays:
        return {None: [] if [] in document.values() else [document]}
    if left := [name for name in document if name not in arrays]:
        source.notes.append(f"Beside the records, these are left out: {', '.join(left)}.")
    return {None: next(iter(arrays.values()))} if len(arrays) == 1 else dict(arrays)


def _rows(values: list[Any]) -> bool:
    return all(isinstance(value, dict) for value in values) and bool(values)


def _holds_rows(value: dict[str, Any]) -> bool:
    return any(
        _rows(inner) if isinstance(inner, list) else isinstance(inner, dict) and _holds_rows(inner)
        for inner in value.values()
    )


FORMAT = Format("json", (".json",), re.compile(rb'\s*(\{\s*["}]|\[\s*[{\]])'), read)
