"""From stored rows to the `data` of a record, as one grant may see it.

Large values come as previews with the call that reads them, unless a detail read names them.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from evidence import binary, routes
from evidence.errors import TooLarge
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from evidence.text import looks_binary
from service.upstreams.store import attached
from service.upstreams.store.visible import StreamView, View

PREVIEW_CHARS = 512


class Big(NamedTuple):
    """Where a large value lies: chunk rows, its size in code points and bytes, its JSON type."""

    first: int
    chunks: int
    chars: int
    bytes: int
    type: str


@dataclass(slots=True)
class Stored:
    """One record as it lies in the store; nothing is cut to a grant yet."""

    seq: int
    record_key: str
    first_emitted_at: str
    data: dict[str, Any]
    big: dict[str, Big]
    changed: dict[str, str]

    def emitted_at(self, granted: frozenset[str]) -> str:
        """When the record or a granted field of it was last emitted; hidden changes never show."""
        seen = (at for field, at in reversed(self.changed.items()) if field in granted)
        return next(seen, self.first_emitted_at)


_LOAD = """
SELECT d.seq, r.record_key, d.emitted_at, d.data, d.big, d.changed
FROM document d JOIN record r ON r.seq = d.seq WHERE d.seq IN (SELECT value FROM json_each(?))
"""


def load(db: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, Stored]:
    """The stored records of `seqs`, by seq."""
    rows = db.execute(_LOAD, (orjson.dumps(list(seqs)).decode(),))
    return {row[0]: _stored(row) for row in rows}


def _stored(row: tuple[Any, ...]) -> Stored:
    seq, record_key, emitted_at, data, big, changed = row
    places = {field: Big(*place) for field, place in orjson.loads(big).items()} if big else {}
    times = orjson.loads(changed) if changed else {}
    return Stored(seq, record_key, emitted_at, orjson.loads(data), places, times)


def chunks(
    db: sqlite3.Connection, big: Big, first: int = 0, last: int | None = None
) -> sqlite3.Cursor:
    """The texts of chunks `first`..`last` (inclusive, counted from 0) of a large value, as rows."""
    stop = big.chunks - 1 if last is None else last
    return db.execute(
        "SELECT text FROM chunk WHERE id BETWEEN ? AND ? ORDER BY id",
        (big.first + first, big.first + stop),
    )


def read_chunks(db: sqlite3.Connection, big: Big, first: int = 0, last: int | None = None) -> str:
    """The text of these chunks."""
    return "".join(text for (text,) in chunks(db, big, first, last))


def show(
    db: sqlite3.Connection, whole: View, view: StreamView, stored: Stored, fields: tuple[str, ...]
) -> dict[str, Any]:
    """The `data` of a record with `fields` only; large and binary values become metadata.

    `whole` is all that the grant shows: it decides whether the bytes of a blob can be had.
    """
    shown: dict[str, Any] = {}
    for field in fields:
        if field in stored.data:
            value = stored.data[field]
            if isinstance(value, str) and looks_binary(value):
                shown[field] = _base64(view, stored, field, value)
            else:
                shown[field] = _linked(db, whole, view, stored, field, value)
        elif field in stored.big:
            shown[field] = _preview(db, view, stored, field)
    return shown


def show_whole(
    db: sqlite3.Connection, whole: View, view: StreamView, stored: Stored, fields: tuple[str, ...]
) -> dict[str, Any]:
    """As `show`, but values are whole, up to 32 MB together; raises `TooLarge` beyond."""
    total = sum(stored.big[field].bytes for field in fields if field in stored.big)
    if total > CONTRACT.export_bytes:
        raise TooLarge(
            f"These fields hold {total} bytes; at most {CONTRACT.export_bytes} are given at once. "
            "Read them in windows with the field-window route.",
            code="response_too_large",
            param="fields",
        )
    shown: dict[str, Any] = {}
    for field in fields:
        if field in stored.data:
            shown[field] = _linked(db, whole, view, stored, field, stored.data[field])
        elif field in stored.big:
            text = read_chunks(db, stored.big[field])
            shown[field] = text if stored.big[field].type == "string" else orjson.loads(text)
    return shown


def _base64(view: StreamView, stored: Stored, field: str, head: str, **ends: Any) -> dict[str, Any]:
    """The metadata of base64 text, with the route of its whole value."""
    declared = view.manifest.fields[field].media_type
    ref = RecordRef(view.name, stored.record_key, view.connection_id)
    return {
        **binary.base64_field(head, declared=declared, **ends),
        "fetch_url": routes.field_value(ref, field),
        "read": _read(view, stored, field),
    }


def _preview(
    db: sqlite3.Connection, view: StreamView, stored: Stored, field: str
) -> dict[str, Any]:
    big = stored.big[field]
    head = read_chunks(db, big, 0, 0)
    if big.type == "string" and looks_binary(head):
        tail = read_chunks(db, big, big.chunks - 1)
        return _base64(view, stored, field, head, chars=big.chars, tail=tail)
    return {
        "object": "field_preview",
        "type": big.type,
        "size_chars": big.chars,
        "size_bytes": big.bytes,
        "read": _read(view, stored, field),
        "preview_text": head[:PREVIEW_CHARS],
    }


def _read(view: StreamView, stored: Stored, field: str) -> dict[str, Any]:
    return routes.field_window_read(view.name, stored.record_key, view.connection_id, field)


def _linked(
    db: sqlite3.Connection, whole: View, view: StreamView, stored: Stored, field: str, value: Any
) -> Any:
    """A value whose blob references, alone or in a list, lead to their bytes."""
    if binary.is_reference(value):
        return attached.linked(db, whole, view, stored.seq, field, value)
    if isinstance(value, list) and any(map(binary.is_reference, value)):
        return [_linked(db, whole, view, stored, field, one) for one in value]
    return value
