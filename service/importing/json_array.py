"""Rows of one JSON document: an array of objects, or an object with one such array."""

from collections.abc import Iterator
from typing import Any

import orjson

from evidence.errors import InvalidRequest, TooLarge
from evidence.limits import BUDGETS
from service.importing.json_rows import row_of
from service.importing.source import Item, Source


def read(source: Source) -> Iterator[Item]:
    most = BUDGETS.import_json_bytes
    content = source.file.read(most + 1)
    if len(content) > most:
        raise TooLarge(
            f"{source.name} is over {most} bytes, too large to be read as one JSON value. "
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
        yield number, row_of(value)


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
