"""Fields of records, read whole: as text by windows, or as bytes."""

import base64
import binascii
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from evidence import pointer
from evidence.errors import NotText, TooLarge
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from service.pdpp.decode import text_of
from service.pdpp.encode import body_of
from evidence.text import looks_binary
from service.cli.export.asking import Asker
from service.cli.export.texts import Window
from service.ports import Blob, RecordRead, ResourceServer, WindowRequest


@dataclass(frozen=True, slots=True)
class FieldText:
    """The text of a field. Values other than strings are read as JSON."""

    asker: Asker
    ref: RecordRef
    path: str

    def window(self, offset: int, limit: int | None = None) -> Window:
        """Reads a window; raises `NotText` for a binary field, and the errors of the source."""
        asked = WindowRequest(offset_chars=offset, limit_chars=limit or CONTRACT.window_chars_max)
        window = self.asker.ask(lambda rs: rs.field_window(self.ref, self.path, asked)).value
        if window.binary is not None:
            raise NotText(
                f"{self.path} is a binary field, not text.",
                hint="Export its bytes: "
                + shlex.join(["rung", "export", "blob", str(self.ref), self.path]),
            )
        return Window(window.text, window.start, window.total, window.type)

    def version(self) -> str:
        """The record's `emitted_at`; empty if the source has none."""
        try:
            # Without `fields`: large values that are named come whole over HTTP.
            record = self.asker.ask(lambda rs: rs.record(RecordRead(self.ref))).value
        except TooLarge:  # a server that gives no previews
            return ""
        return record.emitted_at or ""


def value_of(rs: ResourceServer, ref: RecordRef, name: str) -> Any:
    """The whole value of a top-level field; raises `TooLarge` above 32 MB."""
    answer = rs.record(RecordRead(ref, (name,), whole=True))
    return body_of(answer)["data"].get(name)


def blob_of(rs: ResourceServer, ref: RecordRef, path: str) -> Blob:
    """The bytes of a field: those of its blob, or of its base64 text."""
    name = pointer.top_level(path)
    body = body_of(rs.record(RecordRead(ref, (name,))))
    value = body["data"].get(name)
    if is_cut(value):
        value = value_of(rs, ref, name)
    if isinstance(value, orjson.Fragment):  # nested values of a store are JSON text
        value = orjson.loads(orjson.dumps(value))
    value = pointer.inside(value, path)
    if isinstance(value, dict) and isinstance(value.get("blob_id"), str):
        connection = text_of(body, "connection_id") or ref.connection_id
        return rs.blob(value["blob_id"], connection_id=connection)
    if isinstance(value, str) and looks_binary(value):
        return _decoded(value)
    raise NotText(
        f"{path} is not a binary field.",
        code="field_not_binary",
        hint=f"Export it as text: {shlex.join(['rung', 'export', 'field', str(ref), path])}",
    )


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
