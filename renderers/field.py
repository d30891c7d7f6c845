"""Renders a field window as text: its position, the next calls, and the text itself in a fence."""

from dataclasses import replace
from typing import Any

import orjson

from evidence import wire
from evidence.handles import field_window_uri
from evidence.limits import Budgets
from evidence.records import FieldRead
from evidence.text import escape
from evidence.values import BlobRef, Bytes
from renderers.rendering import Context, Rendering, fenced, fit_both, header, warning

#: An offset with as many digits as any field can have, and the bytes of a fence.
WIDE, FENCE_BYTES = 10**9, 128


def fit(read: FieldRead, budgets: Budgets) -> FieldRead:
    """The window, cut to the size of a tool result; a match stays inside."""
    longest = replace(read, text="x", start=WIDE, total=3 * WIDE, ended_early=True)
    lines = sum(len(line.encode()) + 1 for line in about(longest, Context(), WIDE))
    room = {
        "shown": budgets.text_bytes - lines - FENCE_BYTES,
        "json": budgets.structured_bytes - len(orjson.dumps(wire.field(longest))) - FENCE_BYTES,
    }
    cut = fit_both(read.text, **room)
    if len(cut) == len(read.text):
        return read
    begin = 0
    if read.match_end is not None and read.match_end > read.start + len(cut):
        begin = max(0, (read.match_start or read.start) - read.start - len(cut) // 4)
        cut = fit_both(read.text[begin:], **room)
    start = read.start + begin
    return replace(read, text=cut, start=start, ended_early=True)


def render(read: FieldRead, context: Context) -> Rendering:
    """Both channels of a window that fits, or of the metadata of a binary field."""
    structured = wire.field(read)
    uri = field_window_uri(
        read.ref, read.field_path, offset_chars=read.start, limit_chars=read.limit
    )
    text, escapes = escape(read.text)
    lines = about(read, context, escapes)
    if read.binary is not None or not read.text:
        hidden = {} if read.binary is not None else {"resource": uri}
        return replace(context.rendering(lines, structured), hidden=hidden)
    fence = context.fence("\n".join([*lines, text]))
    whole = context.rendering([*lines, fenced(text, fence)], structured)
    return replace(whole, hidden={"resource": uri})


def about(read: FieldRead, context: Context, escapes: int = 0) -> list[str]:
    """The lines around the text of a window: position, warnings, next calls."""
    if read.bytes is not None:
        return _binary(read, read.bytes, context)
    match = None
    if read.match_start is not None:
        match = f"{read.match_start}..{read.match_end}"
    lines = [
        header(
            "read_record_field",
            id=read.id,
            field=read.field_path,
            type=read.type if read.type != "string" else None,
            chars=f"{read.start}..{read.end}",
            of=read.total,
            complete=read.complete,
            match=match,
            escaped=escapes or None,
        ),
        *(warning(notice) for notice in read.warnings),
        *(context.step(continuation) for continuation in read.continuations()),
    ]
    if not read.text:
        lines.append(f"There is no text at this offset: the field ends at {read.total}.")
    return lines


def _binary(read: FieldRead, content: Bytes, context: Context) -> list[str]:
    """The metadata of a binary field; HTTP clients can get its bytes."""
    number, unit = content.known.size or (None, "bytes")
    facts: dict[str, Any] = {
        "size_bytes" if unit == "bytes" else "size_chars": number,
        "sha256": content.known.sha256,
        "blob_id": content.known.blob_id if isinstance(content.known, BlobRef) else None,
    }
    return [
        header(
            "read_record_field",
            id=read.id,
            field=read.field_path,
            type="binary",
            media_type=content.known.media_type,
            **facts,
        ),
        *(warning(notice) for notice in read.warnings),
        f"bytes: {context.blob(content)}",
    ]
