"""Record envelopes -> `RecordPage` and `Document`: declared roles only, binary as metadata."""

from typing import Any

import orjson

from evidence import pointer
from evidence.continuation import Continuation
from evidence.envelope import Envelope
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import READ_FIELD, Document, RecordItem, RecordPage, Source
from evidence.reading import number_of, pick, reference, rows, source_of, text_of, warnings_of
from evidence.reading import short, without
from evidence.size import fit_json, json_bytes
from evidence.text import looks_binary

LISTED_FIELDS = 20
TITLE_CHARS = 300

IDENTITY = (
    "object",
    "stream",
    "connection_id",
    "connector_key",
    "display_name",
    "emitted_at",
)


def read_page(envelope: Envelope, *, stream: str, args: dict[str, Any]) -> RecordPage:
    """The page an upstream answered `query_records` with."""
    body = envelope.body
    meta = body.get("meta") or {}
    count = pick(meta, "count")
    found = [_item(row, stream) for row in rows(body, "data", "records")]
    return RecordPage(
        args=args,
        stream=stream,
        records=[item for item in found if item],
        has_more=bool(body.get("has_more")),
        next_cursor=text_of(body, "next_cursor") or text_of(meta, "next_cursor"),
        next_changes_since=text_of(body, "next_changes_since")
        or text_of(meta, "next_changes_since"),
        count=count if isinstance(count, dict) else {"kind": "none"},
        warnings=warnings_of(body),
    )


def _item(row: dict[str, Any], stream: str) -> RecordItem | None:
    source = source_of(row)
    ref = reference(row, stream, source)
    if ref is None:
        return None
    data = row.get("data")
    return RecordItem(
        ref=ref,
        id=str(ref),
        source=source,
        emitted_at=text_of(row, "emitted_at"),
        data=data if isinstance(data, dict) else {},
        deleted=row.get("deleted") is True,
        envelope=_envelope(row, ref),
        related=[
            rest for part in _object(row, "expanded").values() if (rest := rest_of_related(part))
        ],
    )


def _envelope(row: dict[str, Any], ref: RecordRef) -> dict[str, Any]:
    """A record's own keys without its data; related records become their ids."""
    kept = without(row, ("data", "connector_instance_id"))
    if related := _object(row, "expanded"):
        kept["expanded"] = {name: _handles(rows, ref) for name, rows in related.items()}
    return kept


def read_document(
    envelope: Envelope, *, ref: RecordRef, url: str = "", body_text: str | None = None
) -> Document:
    """One record as a document: the title and text its declared roles name, within bounds.

    What does not fit is named in `metadata`, with the call that reads on. `body_text` is the
    beginning of the text field where the envelope holds only a preview of it.
    """
    body = envelope.body
    source = source_of(body)
    key = text_of(body, "record_key", "record_id", "id") or ref.record_id
    found = RecordRef(ref.stream, key, source.connection_id or ref.connection_id)
    data = _object(body, "data")
    roles = _object(body, "roles")
    metadata: dict[str, Any] = {name: text_of(body, name) for name in IDENTITY}
    metadata |= {"connection_id": found.connection_id, "stream": found.stream}
    metadata["record_id"] = found.record_id
    metadata = {name: value for name, value in metadata.items() if value is not None}
    if told := warnings_of(body):
        said = " ".join(f"{text_of(one, 'code')}: {text_of(one, 'message')}" for one in told)
        metadata["warnings"] = short(said, BUDGETS.message_chars)
    at = _text(data, roles.get("event-time")) or text_of(body, "authored_at", "emitted_at")
    titled = _text(data, roles.get("primary-title"))
    title = titled or fallback_title(source, found.stream, at)
    if len(title) > TITLE_CHARS:
        title = title[: TITLE_CHARS - 1] + "…"
        metadata |= {"title_complete": False, "title_field": roles.get("primary-title") or ""}
    document = Document(str(found), title, "", url, metadata)
    shown = data.get(text_field(body) or "")
    beside = {text_field(body), roles.get("primary-title") if titled else None}
    if isinstance(shown, str) and not looks_binary(shown):
        _fill_others(document, data, beside)
        _fill_text(document, shown, len(shown), str(text_field(body)))
    elif isinstance(shown, dict) and shown.get("object") == "field_preview":
        text = body_text if body_text is not None else text_of(shown, "preview_text") or ""
        _fill_others(document, data, beside)
        _fill_text(document, text, number_of(shown, "size_chars") or 0, str(text_field(body)))
    else:
        _fill_json(document, data)
    for name, listed in _object(body, "expanded").items():
        handles = _handles(listed, found)
        metadata[f"expanded.{name}"] = " ".join(handles["ids"])
        metadata[f"expanded.{name}.has_more"] = handles["has_more"]
        if rest := rest_of_related(listed):
            document.more[f"expanded.{name}.next"] = rest
    metadata["untrusted"] = True
    return document


def text_field(body: dict[str, Any]) -> str | None:
    """The field whose declared role makes it the text of the document."""
    name = _object(body, "roles").get("primary-text")
    return name if isinstance(name, str) and name in _object(body, "data") else None


def fallback_title(source: Source, stream: str, at: str | None) -> str:
    """`label · stream · time`: says what it is without guessing at fields."""
    return " · ".join(part for part in (source.label, stream, at) if part)


def _object(body: dict[str, Any], name: str) -> dict[str, Any]:
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def _text(data: dict[str, Any], field: Any) -> str | None:
    value = data.get(field) if isinstance(field, str) else None
    return value if isinstance(value, str) and value else None


def _fill_text(document: Document, text: str, total: int, field: str) -> None:
    """The beginning of a text field, at most 16,384 code points, and how to read on."""
    document.text = fit_json(text[: CONTRACT.document_chars], _room(document))
    end = len(document.text)
    document.metadata |= {
        "text_field": field,
        "text_complete": end >= total,
        "text_total_chars": total,
    }
    if end < total:
        args = {"id": document.id, "field_path": pointer.path_of(field), "offset_chars": end}
        document.next_read = Continuation(READ_FIELD, args, "next")


def _fill_others(document: Document, data: dict[str, Any], shown: set[Any]) -> None:
    """The fields beside title and text: short ones as flat keys, the others by a call."""
    room, left_out = BUDGETS.metadata_bytes, list[str]()
    for name, value in data.items():
        if name in shown:
            continue
        plain = value if isinstance(value, (str, int, float, bool)) else _dump_line(value)
        cost = len(orjson.dumps([name, plain]))
        if cost > BUDGETS.metadata_value_bytes or cost > room or looks_binary(value):
            left_out.append(name)
            continue
        room -= cost
        document.metadata[f"data.{name}"] = plain
    if left_out:
        args = {"id": document.id, "fields": left_out[:LISTED_FIELDS]}
        document.more["more_fields"] = Continuation("fetch", args, "fields")
        document.metadata["more_field_count"] = len(left_out)


def _room(document: Document) -> int:
    """Bytes for the text: a long id stands in `id`, in `metadata` and in the next read."""
    told = json_bytes(document.metadata.get("warnings", ""))
    return BUDGETS.document_bytes - 2 * len(document.id.encode()) - told


def _fill_json(document: Document, data: dict[str, Any]) -> None:
    """The fields as JSON, the smaller ones first; what does not fit is named, with its read."""
    sizes = {
        name: json_bytes(_dump({name: _plain(value)}).decode()) for name, value in data.items()
    }
    room = _room(document)
    kept, left_out = set[str](), []
    for name in sorted(sizes, key=lambda name: sizes[name]):
        room -= sizes[name]
        if room >= 0:
            kept.add(name)
        else:
            left_out.append(name)
    document.text = _dump({name: _plain(data[name]) for name in data if name in kept}).decode()
    previews = [name for name in data if name in kept and _is_preview(data[name])]
    unread = previews + left_out
    document.metadata["text_complete"] = not unread
    if unread:
        document.metadata["incomplete_fields"] = ", ".join(unread[:LISTED_FIELDS])
        document.metadata["incomplete_field_count"] = len(unread)
        args = {"id": document.id, "field_path": pointer.path_of(unread[0])}
        document.next_read = Continuation(READ_FIELD, args, "read")


def _is_preview(value: Any) -> bool:
    return isinstance(value, dict) and value.get("object") == "field_preview"


def _plain(value: Any) -> Any:
    """A value without its REST address, binary text as metadata."""
    if isinstance(value, str) and looks_binary(value):
        return {"object": "binary_field", "encoding": "base64", "size_chars": len(value)}
    if isinstance(value, dict) and "read" in value and "object" in value:
        return without(value, ("read",))
    return value


def _handles(related: Any, parent: RecordRef) -> dict[str, Any]:
    """The ids of related records, each one fetchable."""
    if not isinstance(related, dict):
        return {"ids": [], "has_more": False}
    listed = rows(related, "data") if "data" in related and "id" not in related else [related]
    refs = [reference(row, None, source_of(row)) for row in listed]
    ids = [
        str(RecordRef(ref.stream, ref.record_id, ref.connection_id or parent.connection_id))
        for ref in refs
        if ref
    ]
    return {"ids": ids, "has_more": related.get("has_more") is True}


def rest_of_related(related: Any) -> Continuation | None:
    """The call that lists all related records, where an expansion does not show them all."""
    more = related.get("more") if isinstance(related, dict) else None
    return Continuation("query_records", more, "related") if isinstance(more, dict) else None


def _dump_line(value: Any) -> str:
    return orjson.dumps(value).decode()


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)
