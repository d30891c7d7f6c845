"""Large values as PDPP previews, with the call that reads the rest."""

from typing import Any

import orjson

from evidence import binary, pointer, routes
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.text import looks_binary


def preview(name: str, value: Any, ref: RecordRef, *, most_bytes: int) -> Any:
    """Return a value, or the preview of one over `most_bytes` with the read of the rest."""
    if not isinstance(value, (str, dict, list)):
        return value
    text = text_of(value)
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size <= most_bytes:
        return value
    where = ref.stream, ref.record_id, ref.connection_id or ""
    if isinstance(value, str) and looks_binary(text[: CONTRACT.chunk_chars]):
        read = {"read": routes.field_window_read(*where, name)}
        return {**binary.base64_field(value), "fetch_url": routes.field_value(ref, name), **read}
    return {
        "object": "field_preview",
        "type": pointer.json_type(value),
        "size_chars": len(text),
        "size_bytes": size,
        "read": routes.field_window_read(*where, name),
        "preview_text": text[: BUDGETS.preview_chars],
    }


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
