"""The schema document of a grant, compact or full, and stream metadata.

Only granted fields, relations and views appear; nothing else is mentioned.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, replace

from evidence.model import Source
from evidence.pointer import is_nested, path_of
from evidence.schema import (
    COMPACT,
    FULL,
    METRICS,
    NAMED,
    Bearer,
    Connector,
    ConnectorList,
    FieldCapability,
    Relation,
    Schema,
    StreamCount,
    StreamDetails,
    StreamList,
    StreamRow,
    StreamSchema,
    merged,
)
from service.records.engine import Snapshot
from service.ports import SchemaQuery
from service.records.view.choices import ambiguous
from service.records.view.documents import usable
from evidence.manifest import StreamManifest
from evidence.times import moment
from service.records.view import StreamView, View


def schema(view: View, query: SchemaQuery) -> Schema:
    """The schema of a grant, `compact`, `full` or as a `document`; `full` needs one stream."""
    streams: Sequence[StreamView] = view.within(query.connection_id)
    if query.stream is not None:
        streams = view.stream(query.stream, query.connection_id)
    if query.detail == "full" and len(streams) > 1:
        raise ambiguous(view, streams, stream=query.stream)
    compact = query.detail == COMPACT
    return Schema(
        _connectors(streams, lambda stream: _described(view, stream, COMPACT if compact else FULL)),
        compact,
        Bearer("grant", "client", view.grant.grant_id),
    )


def connectors(view: View) -> ConnectorList:
    """The granted connectors with the names of their streams."""
    return ConnectorList(_connectors(view.streams, lambda s: StreamSchema(s.name, NAMED)))


def list_streams(snapshot: Snapshot, view: View, connection_id: str | None) -> StreamList:
    """One row per granted (stream, connection), with the number of visible records."""
    rows = []
    streams = view.within(connection_id)
    spans = [snapshot.span(stream.selection()) for stream in streams]
    for stream, span in zip(streams, spans):
        count, _, last = span.get()
        shows_time = stream.manifest.time_field in stream.granted
        updated = moment(last) if shows_time and last is not None else None
        source = Source(stream.connection_id, None, stream.display_name or None)
        rows.append(StreamCount(stream.name, source, count, updated))
    return StreamList(tuple(sorted(rows, key=lambda row: (row.name, row.source.connection_id))))


def stream_details(view: View, name: str, connection_id: str | None) -> StreamDetails:
    """One stream by name in full; 409 if connections share the name but not the description."""
    streams = view.stream(name, connection_id)
    row, *rest = [_row(stream, _described(view, stream, FULL)) for stream in streams]
    if any(twin.stream != row.stream for twin in rest):
        raise ambiguous(view, streams)
    connections = tuple(source for stream_row in (row, *rest) for source in stream_row.connections)
    return StreamDetails(replace(row, connections=connections))


def _connectors(
    streams: Iterable[StreamView], describe: Callable[[StreamView], StreamSchema]
) -> tuple[Connector, ...]:
    """Streams grouped by connector; connections that share a description share a row."""
    return merged(
        Connector(
            stream.connector_key,
            stream.connector_key,
            stream.connector_key,
            (_row(stream, describe(stream)),),
        )
        for stream in sorted(streams, key=lambda s: (s.connector_key, s.name, s.connection_id))
    )


def _row(stream: StreamView, described: StreamSchema) -> StreamRow:
    key = stream.connector_key
    source = Source(stream.connection_id, key, stream.display_name or None)
    return StreamRow(described, key, (source,))


def _described(view: View, stream: StreamView, detail: str) -> StreamSchema:
    """The description of one granted stream."""
    manifest = stream.manifest
    description = StreamSchema(
        stream.name,
        detail,
        manifest.label or None,
        tuple(key for key in manifest.primary_key if key in stream.granted),
        stream.sort_field,
        {
            name: _capability(manifest, path_of(name), detail)
            for name in manifest.fields
            if name in stream.granted
        }
        | {
            path: _capability(manifest, path, detail) for path in stream.ordinals if is_nested(path)
        },
        tuple(Relation(*astuple(expansion)) for expansion, _ in usable(view, stream).values()),
        tuple(stream.views.values()),
    )
    if detail == COMPACT:
        return description
    limit = stream.limit
    return replace(
        description,
        counts=manifest.counts,
        time_field=manifest.time_field if manifest.time_field in stream.granted else None,
        since=None if limit.since is None else moment(limit.since),
        until=None if limit.until is None else moment(limit.until),
    )


def _capability(manifest: StreamManifest, name: str, detail: str) -> FieldCapability:
    kind, full = manifest.paths[name], detail == FULL
    return FieldCapability(
        type=kind.shown_as if full else kind.shown_as or kind.format or kind.type,
        role=kind.role,
        exact=name in manifest.exact_filters,
        operators=manifest.range_filters.get(name),
        lexical=name in manifest.lexical_fields,
        aggregations=tuple(kind for kind in METRICS if name in manifest.aggregations[kind]),
        schema=kind.schema if full else None,
    )
