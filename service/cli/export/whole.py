"""Exports records with every previewed value read in full."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from evidence import pointer
from evidence.errors import TooLarge
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from evidence.records import FieldRead
from service.pdpp.decode import number_of
from service.cli.export import reading
from service.cli.export.reading import Asker, FieldText, is_cut, value_of
from service.cli.export.sinks import State
from service.cli.output import safe, say

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Large:
    """A value that is read separately. `preview` is its preview in the record."""

    asker: Asker
    ref: RecordRef
    name: str
    preview: Body

    @property
    def text(self) -> FieldText:
        return FieldText(self.asker, self.ref, pointer.path_of(self.name))

    @property
    def size(self) -> int:
        """The size in bytes, or else in characters, if the source reports it."""
        size = number_of(self.preview, "size_bytes") or number_of(self.preview, "size_chars") or 0
        return max(0, size)

    @property
    def is_text(self) -> bool:
        """True if it can be read by windows; bytes cannot."""
        return bool(self.preview["object"] == "field_preview")

    def value(self) -> Any:
        """The value if one read returns it, else its preview."""
        if self.is_text and self.size > CONTRACT.whole_bytes:
            return self.preview
        try:
            return self.asker.ask(lambda rs: value_of(rs, self.ref, self.name))
        except TooLarge:
            if not self.is_text:
                say(
                    f"{self.name} of {self.ref} is a binary field over 32 MB; only its "
                    "metadata is exported."
                )
            return self.preview


Segment = bytes | Large


def segments(asker: Asker, record: Body, ref: RecordRef) -> list[Segment]:
    """A record as a line of JSON in pieces, with the values that are read separately."""
    pieces: list[Segment] = []
    text = bytearray()
    for number, (name, value) in enumerate(record.items()):
        text += (b"," if number else b"{") + orjson.dumps(name) + b":"
        if name != "data" or not isinstance(value, dict):
            text += orjson.dumps(value)
            continue
        text += b"{"
        for place, (field, inner) in enumerate(value.items()):
            text += (b"," if place else b"") + orjson.dumps(field) + b":"
            if is_cut(inner):
                pieces += [bytes(text), Large(asker, ref, field, inner)]
                text = bytearray()
            else:
                text += orjson.dumps(inner)
        text += b"}"
    return [*pieces, bytes(text) + b"}\n"]


def as_json(segment: Segment, state: State) -> Iterator[tuple[bytes, State]]:
    """A segment after `state` as JSON, piece by piece, with the state for resuming."""
    value = segment if isinstance(segment, bytes) else segment.value()
    if isinstance(value, bytes):
        yield value, {}
    elif isinstance(segment, Large) and segment.is_text and is_cut(value):
        for window, after in reading.pieces(segment.text, state):
            yield _json(window), after
    else:
        yield orjson.dumps(value), {}


def as_cell(value: Any, *, raw: bool) -> Iterator[bytes]:
    """A value as a cell of CSV, piece by piece. Null is nothing, empty text is `""`.

    Text is that of `output.safe`, unless `raw`.
    """
    large = value if isinstance(value, Large) else None
    if large is not None:
        value = large.value()
    if large is not None and large.is_text and is_cut(value):
        yield b'"'
        for window, _ in reading.pieces(large.text, {}):
            text = window.text if raw else safe(window.text, begins=window.start == 0)
            yield text.replace('"', '""').encode()
        yield b'"'
    else:
        yield _cell(value if raw or not isinstance(value, str) else safe(value)).encode()


def _json(window: FieldRead) -> bytes:
    """A window of text as a part of a JSON string; one of JSON as it is, on one line."""
    if window.type != "string":
        return window.text.replace("\n", " ").replace("\r", " ").encode()
    text = orjson.dumps(window.text)[1:-1]
    first, last = window.start == 0, window.end >= window.total
    return (b'"' if first else b"") + text + (b'"' if last else b"")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    plain = text and text.strip() == text and not any(char in text for char in '",\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'
