"""Rows of NDJSON, one object per line, and of a JSON document: an array, or an object with arrays.

Several arrays in an object are several streams. An object without arrays is a record, and so is
what an object has besides its arrays, if it has a text. A document is
read twice, one value at a time, so that its arrays are known and its syntax is checked before the
first row.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from json import dumps
from typing import Any, Final

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.importing.inference import TEXT_NAMES, TITLE_NAMES
from service.importing.json_values import JsonReader, parsed
from service.importing.source import Format, Item, Repair, Source, Undecodable, as_text, seekable
from service.records.intake import Row

#: A text of its own, which a wrapper of records has not: a title, or several words.
TEXT: Final = "text"
_WORDS: Final = re.compile(r'"[^"]*[^\W\d_]{2}\s+[^"]*[^\W\d_]{2}')
_NAMES: Final = frozenset({*TITLE_NAMES, *TEXT_NAMES})
#: The content of an array: only objects, nothing, or other values.
ROWS: Final = "rows"
EMPTY: Final = "empty"
OTHERS: Final = "others"


def read_document(source: Source) -> Iterator[Item]:
    """The rows of a document, numbered."""
    with seekable(source):
        shape = _checked(source)
        path, streams = ((), None) if source.group else _arrays(source, shape)
        with as_text(source) as text:
            found = _values(JsonReader(source, text), path, streams)
            for number, (stream, content) in enumerate(found, start=1):
                yield number, partial(_record, content, stream, source.repair)


def _record(content: str, stream: str | None, repair: Repair) -> Row | str:
    row = parsed(content.encode(), repair, "record")
    return row._replace(stream=row.stream or stream) if isinstance(row, Row) else row


def _checked(source: Source) -> Any:
    """The shape of a document; raises InvalidRequest if it is not JSON."""
    trial = replace(source, repair=Repair(source.repair.replace), notes=[])
    with as_text(trial) as text:
        reader = JsonReader(trial, text)
        try:
            shape = _shape(reader)
            reader.end()
        except RecursionError:
            raise InvalidRequest(f"{source.name} is nested too deeply. Flatten it.") from None
    source.file.seek(0)
    return shape


def _shape(reader: JsonReader, named: bool = False) -> Any:
    """Reads a value: {name: shape} of an object, the content of an array, TEXT, or None."""
    if reader.next() == "{":
        return {name: _shape(reader, name.lower() in _NAMES) for name in reader.members()}
    if reader.next() != "[":
        value = reader.value()
        return (
            TEXT if value != '""' and (named and value[0] == '"' or _WORDS.match(value)) else None
        )
    begins = {content[:1] for content in reader.elements()}
    return EMPTY if not begins else ROWS if begins == {"{"} else OTHERS


def _arrays(source: Source, shape: Any) -> tuple[tuple[str, ...], dict[str, str | None] | None]:
    """The location of the records: the names that lead to an object, {name: stream} of its arrays.

    The stream None is that of the file. The name "" is for what the object has besides its arrays,
    if that is a record. If there are no arrays but one value, the records are in it.
    """
    if shape in (ROWS, EMPTY, OTHERS):
        return (), None
    if not shape:
        raise InvalidRequest(
            f"{source.name} must contain an object or an array of objects. "
            "Extract the array, for example: jq -c '.items[]' FILE | rung import -"
        )
    arrays = [name for name, inner in shape.items() if inner == ROWS]
    objects = [name for name, inner in shape.items() if isinstance(inner, dict)]
    if not arrays and len(objects) == 1 and _holds_rows(shape[objects[0]]):
        path, streams = _arrays(source, shape[objects[0]])
        return (objects[0], *path), streams
    own = TEXT in shape.values() or any(map(_holds_rows, map(shape.get, objects)))
    if not arrays:
        return (), {} if EMPTY in shape.values() and not own else None
    streams = {arrays[0]: None} if len(arrays) == 1 else {name: name for name in arrays}
    if own:
        streams[""] = f"{source.stream} about" if len(arrays) == 1 else None
    elif left := [name for name in shape if name not in arrays]:
        source.notes.append(f"Left out, because they are not records: {', '.join(left)}.")
    return (), streams


def _holds_rows(shape: Any) -> bool:
    if isinstance(shape, dict):
        return any(map(_holds_rows, shape.values()))
    return bool(shape == ROWS)


def _values(
    reader: JsonReader, path: tuple[str, ...], streams: dict[str, str | None] | None
) -> Iterator[tuple[str | None, str]]:
    """(stream, JSON) of each record."""
    if not path and streams is None:
        found = reader.elements() if reader.next() == "[" else iter([reader.value()])
        yield from ((None, content) for content in found)
        return
    own = list[str]()
    for name in reader.members():
        if path and name == path[0]:
            yield from _values(reader, path[1:], streams)
        elif not path and streams and name in streams:
            yield from ((streams[name], content) for content in reader.elements())
        elif not path and streams and "" in streams:
            own.append(f"{dumps(name)}:{reader.value()}")
        else:
            _shape(reader)
    if own and streams:
        yield streams[""], f"{{{','.join(own)}}}"


JSON = Format("json", (".json",), re.compile(rb'\s*(\{\s*["}]|\[\s*[{\]])'), read_document)


def read_lines(source: Source) -> Iterator[Item]:
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
                    content = source.repair.decoded(line).encode()
                    yield number, partial(parsed, content, source.repair, "line")
                except Undecodable as error:
                    yield number, f"{error}."


NDJSON = Format("ndjson", (".ndjson", ".jsonl"), re.compile(rb"\s*\{.*\}\s*(\n|$)"), read_lines)
