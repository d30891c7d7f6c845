"""PDPP bodies of lists and records -> `RecordPage` and `Record`."""

from typing import Any

from evidence.handles import RecordRef
from evidence.model import Source
from evidence.records import Count, Record, RecordPage, Related, Span
from service.pdpp.decode import number_of, object_of, pick, reference, rows, source_of, text_of
from service.pdpp.decode import values, warnings_of

Body = dict[str, Any]


def decode_page(body: Body, stream: str, *, whole: bool = False) -> RecordPage:
    """The page of a list body. Rows that name no record are left out.

    `whole` leaves base64 text as it is.
    """
    meta = body.get("meta") or {}
    records = [_row(row, stream, None, whole) for row in rows(body, "data", "records")]
    return RecordPage(
        stream=stream,
        records=[record for record in records if record],
        has_more=bool(body.get("has_more")),
        next_cursor=text_of(body, "next_cursor") or text_of(meta, "next_cursor"),
        next_changes_since=text_of(body, "next_changes_since")
        or text_of(meta, "next_changes_since"),
        count=_count(pick(meta, "count")),
        span=_span(pick(meta, "window")),
        warnings=warnings_of(body),
    )


def decode_record(body: Body, ref: RecordRef, *, whole: bool = False) -> Record:
    """The record of a detail body. `ref` is the record that was asked for."""
    source = source_of(body)
    key = text_of(body, "record_key", "record_id", "id") or ref.record_id
    owned = RecordRef(ref.stream, key, source.connection_id or ref.connection_id)
    return _record(body, owned, source, whole)


def _row(row: Body, stream: str | None, parent: RecordRef | None, whole: bool) -> Record | None:
    """A record of a list; related records default to the connection of their parent."""
    source = source_of(row)
    ref = reference(row, stream, source)
    if ref is None:
        return None
    if parent is not None and ref.connection_id is None:
        ref = ref._replace(connection_id=parent.connection_id)
    return _record(row, ref, source, whole)


def _record(row: Body, ref: RecordRef, source: Source, whole: bool) -> Record:
    roles = object_of(row, "roles").items()
    return Record(
        ref=ref,
        source=source,
        emitted_at=text_of(row, "emitted_at"),
        data={
            name: values.decode(value, whole=whole)
            for name, value in object_of(row, "data").items()
        },
        authored_at=text_of(row, "authored_at"),
        roles={role: name for role, name in roles if isinstance(name, str)},
        title=text_of(row, "title"),
        text=text_of(row, "text"),
        deleted=row.get("deleted") is True,
        deleted_at=text_of(row, "deleted_at"),
        expanded={name: _related(found, ref) for name, found in object_of(row, "expanded").items()},
        warnings=warnings_of(row),
    )


def _related(found: Any, parent: RecordRef) -> Related:
    if not isinstance(found, dict):
        return Related([], single=True)
    single = "data" not in found or "id" in found
    listed = [found] if single else rows(found, "data")
    records = [record for row in listed if (record := _row(row, None, parent, False))]
    more = found.get("more")
    listing = more if isinstance(more, dict) else None
    return Related(records, found.get("has_more") is True, single, listing)


def _count(found: Any) -> Count:
    kind = text_of(found, "kind")
    return Count(kind, number_of(found, "value")) if kind else Count()


def _span(found: Any) -> Span | None:
    total = number_of(found, "total")
    if total is None:
        return None
    return Span(total, text_of(found, "earliest_at"), text_of(found, "latest_at"))
