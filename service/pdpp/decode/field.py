"""The PDPP `field_window` body -> `FieldRead`."""

from typing import Any

from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.records import FieldRead
from evidence.values import Base64, BlobRef, is_reference
from service.pdpp.decode import number_of, object_of, source_of, text_of, values, warnings_of


def decode_field(body: dict[str, Any], ref: RecordRef, field_path: str) -> FieldRead:
    """The window of a body; its end is where its text ends, counted in code points."""
    source = source_of(body)
    connection = source.connection_id or ref.connection_id
    window = object_of(body, "window")
    described = body.get("field")
    text = text_of(window, "text") or ""
    start = number_of(window, "start_chars") or 0
    total = number_of(window, "total_chars")
    known = body.get("binary")
    return FieldRead(
        ref=ref._replace(connection_id=connection),
        source=source._replace(connection_id=connection),
        field_path=field_path,
        type=text_of(described, "type") or "string",
        media_type=text_of(described, "media_type"),
        text=text,
        start=start,
        total=total or start + len(text),
        limit=number_of(window, "limit_chars") or CONTRACT.window_chars,
        match_start=number_of(window, "match_start_chars"),
        match_end=number_of(window, "match_end_chars"),
        match=number_of(window, "match"),
        next_match=number_of(window, "next_match"),
        binary=_binary(known) if isinstance(known, dict) else None,
        warnings=warnings_of(body)[: BUDGETS.window_warnings],
    )


def _binary(known: dict[str, Any]) -> Base64 | BlobRef:
    return values.reference(known) if is_reference(known) else values.described(known)
