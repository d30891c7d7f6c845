"""Decodes PDPP bodies of lists, records, fields and aggregates into typed values."""

import re
from typing import Any
from urllib.parse import unquote

from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Buckets, Group, Source
from evidence.records import Count, FieldRead, Record, RecordPage, Related, TimeSpan
from evidence.text import looks_binary
from evidence.values import BASE64, Base64, BlobRef, Preview, base64_of, is_reference
from service.pdpp.decode import as_of, number_of, numbers, object_of, pick, reference, rows
from service.pdpp.decode import source_of, text_of, texts, warnings_of

Body = dict[str, Any]


def decode_page(body: Body, stream: str, *, whole: bool = False) -> RecordPage:
    """The page of a list body. Rows without a record id are left out.

    `whole` leaves base64 text unchanged.
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
        as_of=as_of(body),
    )


def decode_record(body: Body, ref: RecordRef, *, whole: bool = False) -> Record:
    """The record of a detail body. `ref` is the requested record."""
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
        data={
            name: decode_value(value, whole=whole) for name, value in object_of(row, "data").items()
        },
        roles={role: name for role, name in roles if isinstance(name, str)},
        deleted=row.get("deleted") is True,
        **texts(row, "emitted_at", "authored_at", "title", "text", "deleted_at"),
        expanded={
            name: _related(relation, ref) for name, relation in object_of(row, "expanded").items()
        },
        warnings=warnings_of(row),
    )


def _related(relation: Any, parent: RecordRef) -> Related:
    if not isinstance(relation, dict):
        return Related([], single=True)
    single = "data" not in relation or "id" in relation
    related_rows = [relation] if single else rows(relation, "data")
    records = [record for row in related_rows if (record := _row(row, None, parent, False))]
    call = relation.get("more")
    listing = call if isinstance(call, dict) else None
    return Related(records, relation.get("has_more") is True, single, listing)


def _count(count: Any) -> Count:
    kind = text_of(count, "kind")
    return Count(kind, number_of(count, "value")) if kind else Count()


def _span(span: Any) -> TimeSpan | None:
    total = number_of(span, "total")
    if total is None:
        return None
    return TimeSpan(total, text_of(span, "earliest_at"), text_of(span, "latest_at"))


#: Members of a reference to a blob that do not describe the blob.
_BLOB_ROUTE = re.compile(r"(?:https?://[^/]+)?/v1/blobs/([^/?#]+)")
_DROPPED = ("data_base64", "fetch_url", "available")


def decode_value(value: Any, *, whole: bool = False) -> Any:
    """The typed value. `whole` leaves base64 text unchanged; otherwise it is described."""
    if isinstance(value, str):
        return value if whole or not looks_binary(value) else base64_of(value)
    if isinstance(value, list):
        if not any(map(is_reference, value)):
            return value
        return [
            decode_value(element) if isinstance(element, list) or is_reference(element) else element
            for element in value
        ]
    if is_reference(value):
        return blob_reference(value)
    kind = value.get("object") if isinstance(value, dict) else None
    if kind == "binary_field":
        return described(value)
    size = number_of(value, "size_chars")
    if kind == "field_preview" and size is not None:
        text, type = text_of(value, "preview_text") or "", text_of(value, "type")
        return Preview(text, size, type, number_of(value, "size_bytes"))
    return value


def blob_reference(value: dict[str, Any]) -> BlobRef:
    """The reference to a blob, without its bytes; of its address, only the id is used."""
    members = {name: member for name, member in value.items() if name not in _DROPPED}
    route = _BLOB_ROUTE.match(text_of(value, "fetch_url") or "")
    key = unquote(route[1]) if route else members["blob_id"]
    return BlobRef.of(members, key, value.get("available") is not False)


def described(value: dict[str, Any]) -> Base64:
    """The metadata of base64 text."""
    return Base64(
        text_of(value, "mime_type", "media_type"),
        number_of(value, "size_bytes"),
        number_of(value, "size_chars"),
        text_of(value, "sha256"),
        text_of(value, "encoding") or BASE64,
    )


def decode_field(body: dict[str, Any], ref: RecordRef, field_path: str) -> FieldRead:
    """The window of a body; its end is computed from its text, in code points."""
    source = source_of(body)
    connection = source.connection_id or ref.connection_id
    window = object_of(body, "window")
    described = body.get("field")
    text = text_of(window, "text") or ""
    start = number_of(window, "start_chars") or 0
    total = number_of(window, "total_chars")
    binary = body.get("binary")
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
        **numbers(window, "match_start", "match_end", suffix="_chars"),
        **numbers(window, "match", "next_match"),
        binary=_binary(binary) if isinstance(binary, dict) else None,
        warnings=warnings_of(body)[: BUDGETS.window_warnings],
    )


def _binary(body: dict[str, Any]) -> Base64 | BlobRef:
    return blob_reference(body) if is_reference(body) else described(body)


def decode_buckets(body: dict[str, Any], *, stream: str = "", metric: str = "") -> Buckets:
    """The value or the groups of a body; `stream` and `metric` are used if the body lacks them."""
    inner = body.get("data")
    figure = inner if body.get("object") != "aggregation" and isinstance(inner, dict) else body
    groups = tuple(
        Group(row.get("key"), number_of(row, "count"), row.get("value"))
        for row in rows(figure, "groups")
    )
    return Buckets(
        stream=text_of(figure, "stream") or stream,
        metric=text_of(figure, "metric") or metric,
        value=figure.get("value"),
        groups=groups if isinstance(figure.get("groups"), list) else None,
        time_zone=text_of(figure, "effective_time_zone", "time_zone"),
        approximate=figure.get("approximate") is True,
        warnings=warnings_of(body),
        as_of=as_of(body),
        **texts(figure, "field", "group_by", "group_by_time", "granularity", "next_cursor"),
        **numbers(figure, "filtered_record_count", "limit", "other_count", "group_count"),
    )
