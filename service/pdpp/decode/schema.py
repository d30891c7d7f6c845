"""Decodes stream descriptions into `Schema`, `StreamList`, `StreamDetails` or `ConnectorList`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from evidence.model import Source
from evidence import schema
from evidence.manifest.parts import View
from evidence.schema import Connector, ConnectorList, FieldCapability, Schema, StreamCount
from evidence.schema import StreamDetails, StreamList, StreamRow, StreamSchema
from service.pdpp.decode import number_of, numbers, object_of, pick, rows, source_of, text_of
from service.pdpp.decode import sync_of, texts, warnings_of

#: Members only of full descriptions, and members of all but bare names.
_FULL = ("schema", "query", "selection")
_COMPACT = ("field_capabilities", "primary_key", "cursor_field", "expand_capabilities", "views")

Body = dict[str, Any]


def read(body: Body) -> Schema:
    """The schema document, with connectors and streams in their original order."""
    inner = _unwrapped(body, "connectors")
    connectors = [_connector(row) for row in rows(inner, "connectors")]
    if not any(connector.rows for connector in connectors):
        connectors = _by_key(_row(stream, None, []) for stream in rows(inner, "streams"))
    bearer = inner.get("bearer")
    return Schema(
        tuple(connectors),
        compact=inner.get("detail") == schema.COMPACT,
        bearer=(
            schema.Bearer(**texts(bearer, "scope", "token_kind", "grant_id"))
            if isinstance(bearer, dict)
            else None
        ),
        warnings=warnings_of(body),
    )


def connectors(body: Body) -> ConnectorList:
    """The list of connectors."""
    connector_rows = rows(body, "data", "connectors")
    return ConnectorList(tuple(_connector(row) for row in connector_rows), warnings_of(body))


def streams(body: Body) -> StreamList:
    """The list of streams; rows without a name are left out."""
    counts = (_count(row) for row in rows(body, "data", "streams"))
    return StreamList(tuple(row for row in counts if row.name), warnings_of(body))


def stream(body: Body) -> StreamDetails:
    """The metadata of one stream."""
    return StreamDetails(_row(_unwrapped(body, "name"), None, []), warnings_of(body))


def _unwrapped(body: Body, name: str) -> Body:
    """The document, unwrapped from `data` if the server wraps it."""
    inner = body.get("data")
    return inner if isinstance(inner, dict) and name not in body else body


def _by_key(stream_rows: Iterable[StreamRow]) -> list[Connector]:
    """Streams listed without connectors, grouped by the connectors they name."""
    grouped: dict[str | None, list[StreamRow]] = {}
    for row in stream_rows:
        if row.stream.name:
            grouped.setdefault(row.connector_key, []).append(row)
    return [Connector(key, key, key, tuple(group)) for key, group in grouped.items()]


def _connector(body: Body) -> Connector:
    key = text_of(body, "connector_key", "connector_id")
    shared = rows(body, "granted_connections")
    stream_rows = (_row(stream, key, shared) for stream in rows(body, "streams"))
    return Connector(
        key,
        text_of(body, "connector_id"),
        text_of(body.get("source"), "id"),
        tuple(row for row in stream_rows if row.stream.name),
    )


def _row(stream: Body, key: str | None, shared: list[Body]) -> StreamRow:
    key = text_of(stream, "connector_key", "connector_id") or key
    connection_rows = rows(stream, "granted_connections") or shared
    if not connection_rows and text_of(stream, "connection_id"):
        connection_rows = [stream]
    connections = (
        Source(
            text_of(connection, "connection_id"),
            key,
            text_of(connection, "display_name"),
            sync_of(connection),
        )
        for connection in connection_rows
    )
    return StreamRow(_stream(stream), key, tuple(connections))


def _stream(body: Body) -> StreamSchema:
    query = object_of(object_of(body, "query"), "aggregations")
    limit = object_of(body, "time_constraint")
    views = (_view(row) for row in rows(body, "views"))
    mode = text_of(body, "search") or ""
    return StreamSchema(
        name=text_of(body, "name") or "",
        detail=_detail(body),
        label=text_of(body, "label", "display_name"),
        search=mode if schema.SEARCH_MODE.fullmatch(mode) else None,
        primary_key=_names(body.get("primary_key")),
        cursor_field=text_of(body, "cursor_field"),
        fields=_fields(
            body.get("field_capabilities"), object_of(object_of(body, "schema"), "properties")
        ),
        relations=tuple(
            _relation(row)
            for row in rows(body, "expand_capabilities")
            if row.get("usable") is not False and text_of(row, "name")
        ),
        views=tuple(view for view in views if view.id),
        counts=query.get("count") is not False,
        time_field=text_of(body, "consent_time_field"),
        **texts(limit, "since", "until"),
    )


def _detail(body: Body) -> str:
    if any(name in body for name in _FULL):
        return schema.FULL
    return schema.COMPACT if any(name in body for name in _COMPACT) else schema.NAMED


def _names(names: Any) -> tuple[str, ...]:
    return tuple(n for n in names if isinstance(n, str)) if isinstance(names, list) else ()


def _relation(body: Body) -> schema.Relation:
    return schema.Relation(
        text_of(body, "name") or "",
        text_of(body, "target_stream", "stream"),
        text_of(body, "foreign_key", "child_parent_key_field"),
        text_of(body, "cardinality"),
        **numbers(body, "default_limit", "max_limit"),
    )


def _view(body: Body) -> View:
    return View(
        text_of(body, "id", "name") or "", text_of(body, "label"), _names(body.get("fields"))
    )


def _fields(capabilities: Any, schemas: Body) -> dict[str, FieldCapability]:
    """Capabilities by field, from flags, objects, or a list of objects."""
    if isinstance(capabilities, list):
        capabilities = {text_of(row, "name", "field", "path") or "": row for row in capabilities}
    if not isinstance(capabilities, dict):
        return {}
    return {
        name: _capability(capability, schemas.get(name))
        for name, capability in capabilities.items()
        if name and (not isinstance(capability, dict) or capability.get("granted") is not False)
    }


def _capability(body: Any, declared: Any) -> FieldCapability:
    """The capabilities of a field from compact flags or from a full object."""
    if not isinstance(body, dict):
        capability = schema.parse_flags(body if isinstance(body, str) else "")
        return capability if declared is None else replace(capability, schema=declared)
    offered = object_of(body, "aggregation")
    operators = _names(object_of(body, "range_filter").get("operators"))
    return FieldCapability(
        **texts(body, "type", "role"),
        exact=_usable(body, "exact_filter"),
        operators=operators if _usable(body, "range_filter") else None,
        lexical=_usable(body, "lexical_search"),
        semantic=_usable(body, "semantic_search"),
        aggregations=tuple(sorted(name for name in offered if _usable(offered, name))),
        schema=pick(body, "schema") if declared is None else declared,
    )


def _usable(capabilities: Body, name: str) -> bool:
    return object_of(capabilities, name).get("usable") is True


def _count(row: Body) -> StreamCount:
    freshness = row.get("freshness")
    captured = text_of(freshness, "captured_at")
    return StreamCount(
        text_of(row, "name") or "",
        source_of(row),
        number_of(row, "record_count"),
        text_of(row, "last_updated") or captured,
        text_of(freshness, "status"),
    )
