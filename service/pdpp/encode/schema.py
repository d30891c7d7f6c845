"""Descriptions of streams -> the bodies of `/v1/schema`, `/v1/streams` and `/v1/connectors`."""

from collections.abc import Sequence
from typing import Any

from evidence import schema_wire
from evidence.model import Source
from evidence.schema import (
    Connector,
    ConnectorList,
    Schema,
    StreamCount,
    StreamDetails,
    StreamList,
)

Body = dict[str, Any]
_CONNECTIONS = "granted_connections"


def body(found: Schema) -> Body:
    """The schema document. Compact connectors share the connections of most of their streams."""
    known = schema_wire.head(found)
    return {
        "object": "schema",
        **({"detail": "compact"} if found.compact else {}),
        **({"bearer": known.pop("bearer")} if "bearer" in known else {}),
        "connectors": [_connector(one, shared=found.compact) for one in found.connectors],
        **known,
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
    return {
        **schema_wire.stream(found.row.stream),
        _CONNECTIONS: _connections(found.row.connections),
        "meta": schema_wire.meta(found.warnings),
    }


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
        {
            **schema_wire.stream(row.stream),
            **(
                {}
                if shared and row.connections == common
                else {_CONNECTIONS: _connections(row.connections)}
            ),
        }
        for row in found.rows
    ]
    return named


def _connections(found: Sequence[Source]) -> list[Body]:
    return [schema_wire.connection(one) for one in found]


def _count(row: StreamCount) -> Body:
    found: Body = {"object": "stream", "name": row.name}
    if row.record_count is not None:
        found["record_count"] = row.record_count
    if row.source.connection_id is not None:
        found["connection_id"] = found["connector_instance_id"] = row.source.connection_id
    if row.source.connector_key is not None:
        found["connector_key"] = row.source.connector_key
    if row.source.display_name is not None:
        found["display_name"] = row.source.display_name
    found["freshness"] = {"status": row.freshness} if row.freshness is not None else {}
    if row.last_updated is not None:
        found["last_updated"] = found["freshness"]["captured_at"] = row.last_updated
    return found
