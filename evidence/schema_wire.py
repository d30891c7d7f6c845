"""Converts stream descriptions to JSON, for MCP `structuredContent` and for REST.

`document`, `connectors`, `streams` and `details` are REST bodies.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evidence.model import SYNC_MEMBERS, Source, known, members
from evidence.schema import FULL, METRICS, NAMED, Connector, ConnectorList, FieldCapability
from evidence.schema import Relation, Schema, StreamCount, StreamDetails, StreamList, StreamRow
from evidence.schema import StreamSchema

Body = dict[str, Any]
_CONNECTIONS = "granted_connections"


def document(schema: Schema) -> Body:
    """The schema document. Compact connectors list the connections of most of their streams."""
    return {
        "object": "schema",
        **({"detail": "compact"} if schema.compact else {}),
        **head(schema),
        "connectors": [_connector(entry, shared=schema.compact) for entry in schema.connectors],
    }


def connectors(listing: ConnectorList) -> Body:
    """The list of connectors."""
    return {
        "object": "list",
        "data": [_connector(connector, shared=True) for connector in listing.connectors],
        **({"meta": meta(listing.warnings)} if listing.warnings else {}),
    }


def streams(listing: StreamList) -> Body:
    """The list of streams, one row per connection."""
    return {
        "object": "list",
        "has_more": False,
        "data": [_count(row) for row in listing.rows],
        "meta": meta(listing.warnings),
    }


def details(stream_details: StreamDetails) -> Body:
    """The metadata of one stream."""
    return {**_row(stream_details.row, apart=True), "meta": meta(stream_details.warnings)}


def _connector(connector: Connector, *, shared: bool) -> Body:
    body: Body = {
        "object": "connector",
        "source": {"id": connector.source_id, "kind": "connector"},
        "connector_key": connector.key,
        "connector_id": connector.id,
        "stream_count": len(connector.rows),
    }
    common = max((row.connections for row in connector.rows), key=len, default=())
    if shared:
        body[_CONNECTIONS] = [*map(connection, common)]
    rows = connector.rows
    body["streams"] = [_row(r, apart=not shared or r.connections != common) for r in rows]
    return body


def _row(row: StreamRow, *, apart: bool) -> Body:
    """The description of a stream; `apart` adds connections that its connector does not list."""
    connections = {_CONNECTIONS: [*map(connection, row.connections)]} if apart else {}
    return {**stream(row.stream), **connections}


def _count(row: StreamCount) -> Body:
    body = {
        "object": "stream",
        "name": row.name,
        "record_count": row.record_count,
        "connector_instance_id": row.source.connection_id,
        **row.source._asdict(),
        "freshness": known({"status": row.freshness, "captured_at": row.last_updated}),
        "last_updated": row.last_updated,
    }
    return known(body)


def head(schema: Schema) -> Body:
    """The members of a schema document other than its connectors."""
    return {
        **({"bearer": known(asdict(schema.bearer))} if schema.bearer else {}),
        "connector_count": len(schema.connectors),
        "stream_count": len(schema.rows),
        "meta": meta(schema.warnings),
    }


def meta(warnings: Sequence[Body]) -> Body:
    """The `meta` of an answer without counts."""
    return {"count": {"kind": "none"}, "warnings": [*warnings]}


def connection(source: Source) -> Body:
    """One entry of `granted_connections`."""
    status = members(source.sync, *SYNC_MEMBERS) if source.sync else {}
    return known(members(source, "connection_id", "display_name") | status)


def stream(schema: StreamSchema) -> Body:
    """The description of a stream in its detail, without its connections."""
    if schema.detail == NAMED:
        return {"object": "stream", "name": schema.name}
    return _full(schema) if schema.detail == FULL else _compact(schema)


def _compact(schema: StreamSchema) -> Body:
    body: Body = {
        "name": schema.name,
        "primary_key": [*schema.primary_key],
        "cursor_field": schema.cursor_field,
        "field_capabilities": {name: field.flags for name, field in schema.fields.items()},
        "expand_capabilities": [_expand_capability(relation) for relation in schema.relations],
    }
    if schema.views:
        body["views"] = _views(schema)
    return body | known(members(schema, "label", "search"))


def _full(schema: StreamSchema) -> Body:
    body: Body = {
        "object": "stream_metadata",
        "name": schema.name,
        "primary_key": [*schema.primary_key],
        "cursor_field": schema.cursor_field,
        "schema": json_schema(schema),
        "selection": {"fields": True, "resources": True},
        "query": _query(schema),
        "views": _views(schema),
        "relationships": [
            members(relation, "name", "stream", "foreign_key", "cardinality")
            for relation in schema.relations
        ],
        "field_capabilities": {
            name: _capabilities(capability) for name, capability in schema.fields.items()
        },
        "expand_capabilities": [_expand_capability(relation) for relation in schema.relations],
    }
    limit = known(members(schema, "since", "until"))
    body |= known({"consent_time_field": schema.time_field, "time_constraint": limit or None})
    return body | known(members(schema, "label", "search"))


def json_schema(schema: StreamSchema) -> Body:
    """The JSON Schema of the records of a stream, as far as its fields have one."""
    return {"type": "object", "properties": known({n: f.schema for n, f in schema.fields.items()})}


def _query(schema: StreamSchema) -> Body:
    fields = schema.fields.items()
    by_meaning = [name for name, field in fields if field.semantic]
    semantic = {"semantic_fields": by_meaning} if by_meaning else {}
    return {
        "range_filters": {
            n: [*field.operators] for n, field in fields if field.operators is not None
        },
        "aggregations": {
            "count": schema.counts,
            **{kind: [n for n, field in fields if kind in field.aggregations] for kind in METRICS},
        },
        "search": {"lexical_fields": [name for name, field in fields if field.lexical], **semantic},
        "expand": [
            members(relation, "name", "default_limit", "max_limit") for relation in schema.relations
        ],
    }


def _capabilities(capability: FieldCapability) -> Body:
    declared = {
        "exact_filter": capability.exact,
        "range_filter": capability.operators is not None,
        "lexical_search": capability.lexical,
        "semantic_search": capability.semantic,
    }
    body = {"granted": True, **known({"schema": capability.schema})}
    body |= {name: _declared(on) for name, on in declared.items()}
    if capability.operators:
        body["range_filter"]["operators"] = [*capability.operators]
    kinds = dict.fromkeys((*METRICS, *capability.aggregations))
    body["aggregation"] = {kind: _declared(kind in capability.aggregations) for kind in kinds}
    return body | known(members(capability, "type", "role"))


def _declared(on: bool) -> Body:
    return {"declared": on, "usable": on}


def _expand_capability(relation: Relation) -> Body:
    return {
        **members(relation, "name", "stream"),
        "target_stream": relation.stream,
        **members(relation, "cardinality", "foreign_key"),
        "child_parent_key_field": relation.foreign_key,
        "granted": True,
        "usable": True,
        **members(relation, "default_limit", "max_limit"),
    }


def _views(schema: StreamSchema) -> list[Body]:
    return [{**asdict(view), "fields": [*view.fields]} for view in schema.views]
