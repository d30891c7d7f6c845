"""The field-window envelope -> `FieldRead`. Offsets count code points, whatever upstreams do."""

from typing import Any

from evidence import binary
from evidence.envelope import Envelope
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from evidence.model import FieldRead, Source
from service.pdpp.decode import number_of, source_of, text_of, warnings_of, without

WARNINGS = 3


def read(envelope: Envelope, *, ref: RecordRef, field_path: str, args: dict[str, Any]) -> FieldRead:
    """The window an upstream answered with; its end is where its text ends."""
    body = envelope.body
    source = source_of(body)
    connection = source.connection_id or ref.connection_id
    found = RecordRef(ref.stream, ref.record_id, connection)
    window = body.get("window") if isinstance(body.get("window"), dict) else {}
    assert isinstance(window, dict)
    described = body.get("field")
    text = text_of(window, "text") or ""
    start = number_of(window, "start_chars") or 0
    known = body.get("binary")
    return FieldRead(
        ref=found,
        id=str(found),
        source=Source(connection, source.connector_key, source.display_name),
        field_path=field_path,
        type=text_of(described, "type") or "string",
        media_type=text_of(described, "media_type"),
        text=text,
        start=start,
        end=start + len(text),
        total=number_of(window, "total_chars") or start + len(text),
        limit=number_of(window, "limit_chars") or CONTRACT.window_chars,
        match_start=number_of(window, "match_start_chars"),
        match_end=number_of(window, "match_end_chars"),
        match=number_of(window, "match"),
        next_match=number_of(window, "next_match"),
        args={
            "id": str(found),
            "field_path": field_path,
            **without(args, ("id", "field_path", "connection_id")),
        },
        binary=_described(known, found, field_path) if isinstance(known, dict) else None,
        warnings=warnings_of(body)[:WARNINGS],
    )


def _described(known: dict[str, Any], ref: RecordRef, field_path: str) -> dict[str, Any]:
    """The metadata of bytes with our route to them, however the upstream spells it."""
    if not binary.is_reference(known):
        known = {**known, "object": "binary_field"}
    found: dict[str, Any] = binary.described(known, ref, field_path)
    return without(found, ("object",))
