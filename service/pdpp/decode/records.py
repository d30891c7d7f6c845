"""Record envelopes -> `RecordPage`: binary values as metadata, related records as ids."""

from typing import Any

from evidence import binary, pointer
from evidence.continuation import Continuation
from evidence.envelope import Envelope
from evidence.handles import RecordRef
from evidence.model import RecordItem, RecordPage
from service.pdpp.decode import object_of, pick, reference, rows, source_of, text_of, warnings_of
from service.pdpp.decode import without


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
    data = {
        name: binary.described(value, ref, pointer.path_of(name))
        for name, value in object_of(row, "data").items()
    }
    return RecordItem(
        ref=ref,
        id=str(ref),
        source=source,
        emitted_at=text_of(row, "emitted_at"),
        data=data,
        deleted=row.get("deleted") is True,
        envelope=_envelope(row, ref),
        related=[
            rest for part in object_of(row, "expanded").values() if (rest := rest_of_related(part))
        ],
        bytes=[
            one
            for name, value in data.items()
            for one in binary.bytes_of(value, ref, pointer.path_of(name))
        ],
    )


def _envelope(row: dict[str, Any], ref: RecordRef) -> dict[str, Any]:
    """A record's own keys without its data; related records become their ids."""
    kept = without(row, ("data", "connector_instance_id"))
    if related := object_of(row, "expanded"):
        kept["expanded"] = {name: handles_of(rows, ref) for name, rows in related.items()}
    return kept


def handles_of(related: Any, parent: RecordRef) -> dict[str, Any]:
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
