"""Rows from NDJSON files, with one object per line, and from JSON documents.

A document is an array, an object with arrays, at any depth, or several objects. Several arrays are
several streams. An object without arrays is a record, and so is what an object has besides its
arrays, if it has a text. A document is read twice, one value at a time, so that its arrays are
known and its syntax is checked before the first row.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
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
VALUES: Final = "others"
#: A document of objects that follow each other.
SEVERAL: Final = "several"
#: {names that lead to an array: stream of its objects}; None is the stream of the file. Without
#: names, what a document has besides its arrays, if that is a record.
Streams = dict[tuple[str, ...], str | None]


def read_document(source: Source) -> Iterator[Item]:
    """The rows of a document, numbered."""
    with seekable(source):
        shape = _checked(source)
        streams = None if source.group else _arrays(source, shape)
        with as_text(source) as text:
            records = _records(JsonReader(source, text), streams)
            for number, (stream, content) in enumerate(records, start=1):
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
            while shape == SEVERAL or isinstance(shape, dict):
                if reader.next() != "{":
                    break
                _shape(reader)
                shape = SEVERAL
            reader.end()
        except RecursionError:
            raise InvalidRequest(f"{source.name} is nested too deeply. Flatten it.") from None
    source.file.seek(0)
    return shape


def _shape(reader: JsonReader, inner: bool = False) -> Any:
    """Reads a value: {name: shape} of an object, the content of an array, TEXT, or None."""
    if reader.next() == "{":
        return {name: _shape(reader, name.lower() in _NAMES) for name in reader.members()}
    if reader.next() != "[":
        value = reader.value()
        return (
            TEXT if value != '""' and (inner and value[0] == '"' or _WORDS.match(value)) else None
        )
    begins = {content[:1] for content in reader.elements()}
    return EMPTY if not begins else ROWS if begins == {"{"} else VALUES


def _arrays(source: Source, shape: Any) -> Streams | None:
    """The streams of a document that is an object with arrays of objects, at any depth.

    None if the document is one record, or an array or a sequence of records.
    """
    if shape in (ROWS, EMPTY, VALUES, SEVERAL):
        return None
    if not shape:
        raise InvalidRequest(
            f"{source.name} must contain an object or an array of objects. "
            "Extract the array, for example: jq -c '.items[]' FILE | rung import -"
        )
    arrays = list(_paths(shape))
    if not arrays:
        return {} if EMPTY in shape.values() and not _has_text(shape) else None
    last = Counter(path[-1] for path in arrays)
    streams: Streams = {
        path: path[-1] if last[path[-1]] == 1 else " ".join(path) for path in arrays
    }
    if len(arrays) == 1:
        streams[arrays[0]] = None
    if _has_text(shape):
        streams[()] = f"{source.stream} about" if len(arrays) == 1 else None
    elif skipped := list(_skipped(shape, arrays)):
        source.notes.append(f"Left out, because they are not records: {', '.join(skipped)}.")
    return streams


def _skipped(
    shape: dict[str, Any], arrays: Collection[tuple[str, ...]], at: tuple[str, ...] = ()
) -> Iterator[str]:
    """The names of members that are no array of objects and contain none."""
    for name, inner in shape.items():
        path = (*at, name)
        if path in arrays:
            continue
        if _leads_to(arrays, path):
            yield from _skipped(inner, arrays, path)
        else:
            yield ".".join(path)


def _leads_to(arrays: Iterable[tuple[str, ...]], path: tuple[str, ...]) -> bool:
    """Whether one of some arrays is at a path or below it."""
    return any(array[: len(path)] == path for array in arrays)


def _paths(shape: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The names that lead to each array of objects."""
    for name, inner in shape.items():
        if inner == ROWS:
            yield (name,)
        elif isinstance(inner, dict):
            yield from ((name, *path) for path in _paths(inner))


def _has_text(shape: dict[str, Any]) -> bool:
    """Whether an object, or one in it, has a text outside arrays."""
    return any(
        _has_text(inner) if isinstance(inner, dict) else inner == TEXT for inner in shape.values()
    )


def _records(reader: JsonReader, streams: Streams | None) -> Iterator[tuple[str | None, str]]:
    """(stream, JSON) of each record."""
    if streams is not None:
        own = list[str]()
        yield from _members(reader, streams, (), own)
        if own and () in streams:
            yield streams[()], f"{{{','.join(own)}}}"
    elif reader.next() == "[":
        yield from ((None, content) for content in reader.elements())
    else:
        while reader.next():
            yield None, reader.value()


def _members(
    reader: JsonReader, streams: Streams, at: tuple[str, ...], own: list[str]
) -> Iterator[tuple[str | None, str]]:
    """The records in the arrays of an object; its other members are added to `own`, as JSON."""
    for name in reader.members():
        path = (*at, name)
        if path in streams:
            yield from ((streams[path], content) for content in reader.elements())
        elif _leads_to(streams, path):
            inner = list[str]()
            yield from _members(reader, streams, path, inner)
            own += [f"{dumps(name)}:{{{','.join(inner)}}}"] if inner else []
        elif () in streams:
            own.append(f"{dumps(name)}:{reader.value()}")
        else:
            _shape(reader)


JSON = Format("json", (".json",), re.compile(rb'\s*(\{\s*["}]|\[\s*[{\]])'), read_document)


def is_document(head: bytes) -> bool:
    """Whether the first line of a file is not a whole value, but begins a document."""
    first, end, _ = head.lstrip().partition(b"\n")
    return bool(end and JSON.begins.match(head)) and not first.rstrip().endswith((b"}", b"]"))


def read_lines(source: Source) -> Iterator[Item]:
    number, most = 0, BUDGETS.import_row_bytes
    with as_text(source) as text:
        while line := text.readline(most + 1):
            number += 1
            if len(line) > most:
                while line and not line.endswith("\n"):
                    line = text.readline(most)
                yield number, f"The line is longer than {most} bytes. Split the record."
            elif not line.isspace():
                try:
                    content = source.repair.decoded(line).encode()
                    yield number, partial(parsed, content, source.repair, "line")
                except Undecodable as error:
                    yield number, f"{error}."


NDJSON = Format("ndjson", (".ndjson", ".jsonl"), re.compile(rb"\s*\{.*\}\s*(\n|$)"), read_lines)
