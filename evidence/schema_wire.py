"""Descriptions of streams -> JSON, for MCP `structuredContent` and for REST alike.

`document`, `connectors`, `streams` and `details` are REST bodies.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evidence.model import Source, known, members
from evidence.schema import FULL, METRICS, NAMED, Connector, ConnectorList, FieldCapability
from evidence.schema import Relation, Schema, StreamCount, StreamDetails, StreamList, StreamRow
from evidence.schema import StreamSchema

Body = dict[str, Any]
_CONNECTIONS = "granted_connections"


def document(found: Schema) -> Body:
    """The schema document. Compact connectors list the connections of most of their streams."""
    return {
        "object": "schema",
        **({"detail": "compact"} if found.compact else {}),
        **head(found),
        "connectors": [_connector(one, shared=found.compact) for one in found.connectors],
    }


def connectors(found: ConnectorList) -> Body:
    """The list of connectors."""
    return {
        "object": "list",
        "data": [_connector(one, shared=True) for one in found.connectors],
        **({"meta": meta(found.warnings)} if found.warnings else {}),
    }


def streams(found: StreamList) -> Body:
    """The list of streams, one row per connection."""
    return {
        "object": "list",
        "has_more": False,
        "data": [_count(row) for row in found.rows],
        "meta": meta(found.warnings),
    }


def details(found: StreamDetails) -> Body:
    """The metadata of one stream."""
    return {**_row(found.row, apart=True), "meta": meta(found.warnings)}


def _connector(found: Connector, *, shared: bool) -> Body:
    named: Body = {
        "object": "connector",
        "source": {"id": found.source_id, "kind": "connector"},
        "connector_key": found.key,
        "connector_id": found.id,
        "stream_count": len(found.rows),
    }
    common = max((row.connections for row in found.rows), key=len, default=())
    if shared:
        named[_CONNECTIONS] = [*map(connection, common)]
    rows = found.rows
    named["streams"] = [_row(r, apart=not shared or r.connections != common) for r in rows]
    return named


def _row(row: StreamRow, *, apart: bool) -> Body:
    """The description of a stream; `apart` adds connections that its connector does not list."""
    listed = {_CONNECTIONS: [*map(connection, row.connections)]} if apart else {}
    return {**stream(row.stream), **listed}


def _count(row: StreamCount) -> Body:
    found = {
        "object": "stream",
        "name": row.name,
        "record_count": row.record_count,
        "connector_instance_id": row.source.connection_id,
        **row.source._asdict(),
        "freshness": known({"status": row.freshness, "captured_at": row.last_updated}),
        "last_updated": row.last_updated,
    }
    return known(found)


def head(found: Schema) -> Body:
    """The members of a schema document other than its connectors."""
    return {
        **({"bearer": known(asdict(found.bearer))} if found.bearer else {}),
        "connector_count": len(found.connectors),
        "stream_count": len(found.rows),
        "meta": meta(found.warnings),
    }


def meta(warnings: Sequence[Body]) -> Body:
    """The `meta` of an answer without counts."""
    return {"count": {"kind": "none"}, "warnings": [*warnings]}


def connection(source: Source) -> Body:
    """One entry of `granted_connections`."""
    return known(members(source, "connection_id", "display_name"))


def stream(found: StreamSchema) -> Body:
    """The description of a stream in its detail, without its connections."""
    if found.detail == NAMED:
        return {"object": "stream", "name": found.name}
    return _full(found) if found.detail == FULL else _compact(found)


def _compact(found: StreamSchema) -> Body:
    body: Body = {
        "name": found.name,
        "primary_key": [*found.primary_key],
        "cursor_field": found.cursor_field,
        "field_capabilities": {name: one.flags for name, one in found.fields.items()},
        "expand_capabilities": [_expand_capability(one) for one in found.relations],
    }
    if found.views:
        body["views"] = _views(found)
    return {**body, "label": found.label} if found.label else body


def _full(found: StreamSchema) -> Body:
    body: Body = {
        "object": "stream_metadata",
        "name": found.name,
        "primary_key": [*found.primary_key],
        "cursor_field": found.cursor_field,
        "schema": json_schema(found),
        "selection": {"fields": True, "resources": True},
        "query": _query(found),
        "views": _views(found),
        "relationships": [
            members(one, "name", "stream", "foreign_key", "cardinality") for one in found.relations
        ],
        "field_capabilities": {name: _capabilities(one) for name, one in found.fields.items()},
        "expand_capabilities": [_expand_capability(one) for one in found.relations],
    }
    limit = known(members(found, "since", "until"))
    body |= known({"consent_time_field": found.time_field, "time_constraint": limit or None})
    return {**body, "label": found.label} if found.label else body


def json_schema(found: StreamSchema) -> Body:
    """The JSON Schema of the records of a stream, as far as its fields have one."""
    return {"type": "object", "properties": known({n: f.schema for n, f in found.fields.items()})}


def _query(found: StreamSchema) -> Body:
    fields = found.fields.items()
    return {
        "range_filters": {n: [*one.operators] for n, one in fields if one.operators is not None},
        "aggregations": {
            "count": found.counts,
            **{kind: [n for n, one in fields if kind in one.aggregations] for kind in METRICS},
        },
        "search": {"lexical_fields": [name for name, one in fields if one.lexical]},
        "expand": [members(one, "name", "default_limit", "max_limit") for one in found.relations],
    }


def _capabilities(found: FieldCapability) -> Body:
    declared = {
        "exact_filter": found.exact,
        "range_filter": found.operators is not None,
        "lexical_search": found.lexical,
        "semantic_search": False,
    }
    body = {"granted": True, **known({"schema": found.schema})}
    body |= {name: _declared(on) for name, on in declared.items()}
    if found.operators:
        body["range_filter"]["operators"] = [*found.operators]
    kinds = dict.fromkeys((*METRICS, *found.aggregations))
    body["aggregation"] = {kind: _declared(kind in found.aggregations) for kind in kinds}
    return body | known(members(found, "type", "role"))


def _declared(on: bool) -> Body:
    return {"declared": on, "usable": on}


def _expand_capability(found: Relation) -> Body:
    return {
        **members(found, "name", "stream"),
        "target_stream": found.stream,
        **members(found, "cardinality", "foreign_key"),
        "child_parent_key_field": found.foreign_key,
        "granted": True,
        "usable": True,
        **members(found, "default_limit", "max_limit"),
    }


def _views(found: StreamSchema) -> list[Body]:
    return [{**asdict(one), "fields": [*one.fields]} for one in found.views]
