"""Reads whole values for an export: fields in windows, with retries, and records."""

import base64
import binascii
import hashlib
import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from secrets import token_hex
from typing import Any, TypeVar

import orjson

from evidence import pointer
from evidence.errors import NotFound, NotText, RateLimited, TimedOut, TooLarge, Unavailable
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.records import FieldRead
from evidence.text import looks_binary
from service.cli.export.sinks import State
from service.cli.output import safe, say
from service.operations.base import Session
from service.pdpp.decode import number_of, text_of
from service.pdpp.decode.records import blob_reference
from service.pdpp.encode import body_of
from service.ports import Blob, RecordRead, ResourceServer, WindowRequest

T = TypeVar("T")

#: Codes of `Unavailable` for transient failures.
TRANSIENT = ("upstream_unreachable", "upstream_busy")


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


class RetryingReader:
    """Sends many requests to a source. `open` returns a session for one request."""

    def __init__(self, open: Callable[[], Session], pause: Callable[[float], None] = _wait) -> None:
        self._open = open
        self._pause = pause

    def ask(self, question: Callable[[ResourceServer], T]) -> T:
        """The answer; raises permanent errors, and transient ones that last too long."""
        for tried in count(1):
            try:
                return question(self._open().rs)
            except (RateLimited, Unavailable, TimedOut) as error:
                lasts = isinstance(error, Unavailable) and error.code not in TRANSIENT
                growing = BUDGETS.export_pause_seconds * 2 ** (tried - 1)
                seconds = float(error.details.get("retry_after", growing))
                if lasts or tried == BUDGETS.export_tries or seconds > BUDGETS.export_wait_seconds:
                    raise
                if seconds >= 1:
                    say(f"{error.message} Retrying in {seconds:g} s.")
                self._pause(seconds)
        raise AssertionError("the last attempt returns or raises")


TRIES = 3


class Changed(Exception):
    """The source has changed since an earlier read."""


def pieces(text: "FieldText", state: State) -> Iterator[tuple[FieldRead, State]]:
    """The windows of a text after `state`, each with the state for resuming after it.

    Raises `Changed` as soon as it detects that the text changed.
    """
    version = text.version()
    done, total = 0, None
    if state:
        done, total = state["chars"], state["total"]
        _check_last(text, state, version)
    while total is None or done < total:
        window = text.window(done)
        if window.start != done or window.total != (window.total if total is None else total):
            raise Changed
        if not window.text and window.total > done:
            raise Unavailable(
                f"The source returned no text after character {done}. Try again later.",
                code="upstream_invalid_response",
            )
        done, total = window.end, window.total
        yield window, {
            "chars": window.end,
            "total": window.total,
            "version": version,
            "last_start": window.start,
            "last_sha256": _hashed(window.text),
        }
    if text.version() != version:
        raise Changed


def steady(begin: Callable[[], None], work: Callable[[], None]) -> None:
    """Runs `work`, and restarts it if the source changes meanwhile."""
    for remaining in reversed(range(TRIES)):
        try:
            return work()
        except Changed:
            if remaining:
                begin()
    raise Unavailable(
        "The source changed during export. Try again when no import is running.", code="changing"
    )


def _check_last(text: "FieldText", state: State, version: str) -> None:
    """Reads the last window of an earlier run again; raises `Changed` if it differs."""
    size = state["chars"] - state["last_start"]
    if version != state["version"]:
        raise Changed
    if size:
        again = text.window(state["last_start"], size)
        if again.total != state["total"] or _hashed(again.text) != state["last_sha256"]:
            raise Changed


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class FieldText:
    """The text of a field. Values other than strings are read as JSON."""

    reader: RetryingReader
    ref: RecordRef
    path: str

    def window(self, offset: int, limit: int | None = None) -> FieldRead:
        """Reads a window; raises `NotText` for a binary field, and the errors of the source."""
        request = WindowRequest(offset_chars=offset, limit_chars=limit or CONTRACT.window_chars_max)
        window = self.reader.ask(lambda rs: rs.field_window(self.ref, self.path, request)).value
        if window.binary is not None:
            command = shlex.join(["rung", "export", "blob", str(self.ref), self.path])
            hint = f"Export its bytes: {command}"
            raise NotText(f"{self.path} is a binary field, not text.", hint=hint)
        return window

    def version(self) -> str:
        """The record's `emitted_at`; empty if the source has none."""
        try:
            # Without `fields`: HTTP returns large values whole if they are named.
            record = self.reader.ask(lambda rs: rs.record(self.ref)).value
        except TooLarge:  # a server without previews
            return ""
        return record.emitted_at or ""


def value_of(rs: ResourceServer, ref: RecordRef, name: str) -> Any:
    """The whole value of a top-level field; raises `TooLarge` above 32 MB."""
    answer = rs.record(ref, RecordRead(fields=(name,), whole=True))
    return body_of(answer)["data"].get(name)


def blob_of(rs: ResourceServer, ref: RecordRef, path: str) -> Blob:
    """The bytes of a field: those of its blob, or of its base64 text."""
    name = pointer.top_level(path)
    body = body_of(rs.record(ref, RecordRead(fields=(name,))))
    value = body["data"].get(name)
    if is_cut(value):
        value = value_of(rs, ref, name)
    if isinstance(value, orjson.Fragment):  # nested values of a store are JSON text
        value = orjson.loads(orjson.dumps(value))
    value = pointer.inside(value, path)
    if isinstance(value, dict) and isinstance(value.get("blob_id"), str):
        connection = text_of(body, "connection_id") or ref.connection_id
        reference = blob_reference(value)
        if not reference.available:
            raise NotFound(f"The source has no bytes for {path}.", code="blob_not_found")
        return rs.blob(reference.id, connection_id=connection)
    if isinstance(value, str) and looks_binary(value):
        return _decoded(value)
    hint = f"Export it as text: {shlex.join(['rung', 'export', 'field', str(ref), path])}"
    raise NotText(f"{path} is not a binary field.", code="field_not_binary", hint=hint)


def is_cut(value: Any) -> bool:
    """True if a value of a record is a preview or a reference."""
    if not isinstance(value, dict):
        return False
    sizes = {"field_preview": ("size_chars",), "binary_field": ("size_bytes", "size_chars")}
    names = sizes.get(str(value.get("object")), ())
    return any(isinstance(value.get(name), int) for name in names)


def _decoded(value: str) -> Blob:
    head, comma, tail = value.partition(",") if value.startswith("data:") else ("", "", value)
    try:
        raw = base64.b64decode(tail + "=" * (-len(tail) % 4), altchars=b"-_")
    except (binascii.Error, ValueError):
        raw = tail.encode()
    media_type = head.removeprefix("data:").split(";")[0] or "application/octet-stream"

    def read(start: int, stop: int) -> Iterator[bytes]:
        yield raw[start:stop]

    return Blob("", media_type, len(raw), "", read)


Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Large:
    """A value that is read separately. `preview` is its preview in the record."""

    reader: RetryingReader
    ref: RecordRef
    name: str
    preview: Body

    @property
    def text(self) -> FieldText:
        return FieldText(self.reader, self.ref, pointer.path_of(self.name))

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
        """The value if a single read returns it, else its preview."""
        if self.is_text and self.size > CONTRACT.whole_bytes:
            return self.preview
        try:
            return self.reader.ask(lambda rs: value_of(rs, self.ref, self.name))
        except TooLarge:
            if not self.is_text:
                what = f"{self.name} of {self.ref} is a binary field larger than 32 MB"
                say(f"{what}; only its metadata is exported.")
            return self.preview


Segment = bytes | Large


def segments(reader: RetryingReader, record: Body, ref: RecordRef) -> list[Segment]:
    """A record as a line of JSON in pieces, with the values that are read separately."""
    data, mark = record.get("data"), token_hex()
    if not isinstance(data, dict):
        return [orjson.dumps(record) + b"\n"]
    large = [Large(reader, ref, name, value) for name, value in data.items() if is_cut(value)]
    marked = {name: mark if is_cut(value) else value for name, value in data.items()}
    first, *rest = (orjson.dumps({**record, "data": marked}) + b"\n").split(orjson.dumps(mark))
    return [first, *(segment for pair in zip(large, rest) for segment in pair)]


def as_json(segment: Segment, state: State) -> Iterator[tuple[bytes, State]]:
    """A segment after `state` as JSON, piece by piece, with the state for resuming."""
    value = segment if isinstance(segment, bytes) else segment.value()
    if isinstance(value, bytes):
        yield value, {}
    elif isinstance(segment, Large) and segment.is_text and is_cut(value):
        for window, after in pieces(segment.text, state):
            yield _json(window), after
    else:
        yield orjson.dumps(value), {}


def as_cell(value: Any, *, raw: bool) -> Iterator[bytes]:
    """A value as a CSV cell, piece by piece. Null is an empty cell, empty text is `""`.

    Text is that of `output.safe`, unless `raw`.
    """
    large = value if isinstance(value, Large) else None
    if large is not None:
        value = large.value()
    if large is not None and large.is_text and is_cut(value):
        yield b'"'
        for window, _ in pieces(large.text, {}):
            text = window.text if raw else safe(window.text, begins=window.start == 0)
            yield text.replace('"', '""').encode()
        yield b'"'
    else:
        yield _cell(value if raw or not isinstance(value, str) else safe(value)).encode()


def _json(window: FieldRead) -> bytes:
    """A window of text as part of a JSON string; a window of JSON unchanged, on one line."""
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
