"""Described values of a record -> PDPP previews and metadata, with the call that reads the rest."""

from typing import Any

from evidence import routes
from evidence.handles import RecordRef
from evidence.values import PLAIN, Base64, Preview, as_json


def encode(value: Any, ref: RecordRef, name: str) -> Any:
    """The JSON of the value of a field."""
    if isinstance(value, Preview):
        return {
            "object": "field_preview",
            "type": value.type,
            "size_chars": value.size_chars,
            "size_bytes": value.size_bytes,
            "read": _read(ref, name),
            "preview_text": value.text,
        }
    if isinstance(value, Base64):
        return {**as_json(value, ref, name), "read": _read(ref, name)}
    return as_json(value, ref, name)


def encode_data(data: dict[str, Any], ref: RecordRef) -> dict[str, Any]:
    """The `data` of a record."""
    return {
        name: value if type(value) in PLAIN else encode(value, ref, name)
        for name, value in data.items()
    }


def _read(ref: RecordRef, name: str) -> dict[str, Any]:
    return routes.field_window_read(ref.stream, ref.record_id, ref.connection_id or "", name)
