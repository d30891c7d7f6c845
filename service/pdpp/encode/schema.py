"""Descriptions of streams -> the bodies of `/v1/schema`, `/v1/streams` and `/v1/connectors`."""

from collections.abc import Sequence
from typing import Any

from evidence import schema_wire
from evidence.json_text import known
from evidence.model import Source
from evidence.schema import (
    Connector,
    ConnectorList,
    Schema,
    StreamCount,
    StreamDetails,
    StreamList,
    StreamRow,
)

Body = dict[str, Any]
_CONNECTIONS = "granted_connections"


def body(found: Schema) -> Body:
    """The schema document. Compact connectors share the connections of most of their streams."""
    return {
        "object": "schema",
        **({"detail": "compact"} if found.compact else {}),
        **schema_wire.head(found),
        "connectors": [_connector(one, shared=found.compact) for one in found.connectors],
    }


def connectors(found: ConnectorList) -> Body:
    """The list of connectors."""
    return {
        "object": "list",
        "data": [_connector(one, shared=True) for one in found.connectors],
        **({"meta": schema_wire.meta(found.warnings)} if found.warnings else {}),
    }


def streams(found: StreamList) -> Body:
    """The list of streams, a row per connection."""
    return {
        "object": "list",
        "has_more": False,
        "data": [_count(row) for row in found.rows],
        "meta": schema_wire.meta(found.warnings),
    }


def stream(found: StreamDetails) -> Body:
    """The metadata of one stream."""
    return {**_stream(found.row, apart=True), "meta": schema_wire.meta(found.warnings)}


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
        named[_CONNECTIONS] = _connections(common)
    named["streams"] = [
        _stream(row, apart=not shared or row.connections != common) for row in found.rows
    ]
    return named


def _stream(row: StreamRow, *, apart: bool) -> Body:
    """The description of a stream; `apart` adds connections that its connector does not list."""
    listed = {_CONNECTIONS: _connections(row.connections)} if apart else {}
    return {**schema_wire.stream(row.stream), **listed}


def _connections(found: Sequence[Source]) -> list[Body]:
    return [schema_wire.connection(one) for one in found]


def _count(row: StreamCount) -> Body:
    freshness = {"status": row.freshness, "captured_at": row.last_updated}
    found = {
        "object": "stream",
        "name": row.name,
        "record_count": row.record_count,
        "connector_instance_id": row.source.connection_id,
        **row.source._asdict(),
        "freshness": known(freshness),
        "last_updated": row.last_updated,
    }
    return known(found)
