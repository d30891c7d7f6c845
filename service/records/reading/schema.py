"""The schema document of a grant, compact or full, and stream metadata.

Only granted fields, relations and views appear; nothing else is mentioned.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace

from evidence.model import Source, SyncStatus
from evidence.pointer import is_nested, path_of
from evidence import schema as shapes
from service.records.engine import Snapshot
from service.records.engine.vectors import Covered, share_of
from service.ports import SchemaQuery
from service.records.view.choices import ambiguous
from service.records.view.documents import usable
from evidence.manifest import StreamManifest
from evidence.times import moment
from service.records.view import View
from service.records.view.streams import StreamView, Streams

WORDS, MEANING = "words", "words+meaning"


def search_modes(streams: Streams, covered: Mapping[int, Covered]) -> dict[int, str]:
    """How each stream is searched, by its id, as `StreamSchema` has it.

    Connections that share a row share a figure; it is left out if the grant limits one of them.
    """
    alike = dict[tuple[str, str, tuple[str, ...]], list[int]]()
    for stream in streams:
        key = stream.connector_key, stream.name, stream.semantic
        alike.setdefault(key, []).append(stream.id)
    return {
        id: _mode(ids, covered) if semantic else WORDS
        for (_, _, semantic), ids in alike.items()
        for id in ids
    }


def _mode(ids: Sequence[int], covered: Mapping[int, Covered]) -> str:
    if not covered.keys() >= set(ids):
        return MEANING
    rows = [covered[id] for id in ids]
    return f"{MEANING} {share_of(rows):.0%}" if any(row.done for row in rows) else WORDS


def schema(
    view: View,
    query: SchemaQuery,
    modes: Mapping[int, str] = {},
    statuses: Mapping[str, SyncStatus] = {},
) -> shapes.Schema:
    """The schema of a grant, `compact`, `full` or as a `document`; `full` needs one stream.

    `statuses` are how up to date connections are, by id.
    """
    streams: Sequence[StreamView] = view.within(query.connection_id)
    if query.stream is not None:
        streams = view.stream(query.stream, query.connection_id)
    if query.detail == "full" and len(streams) > 1:
        raise ambiguous(view, streams, stream=query.stream)
    compact = query.detail == shapes.COMPACT
    detail = shapes.COMPACT if compact else shapes.FULL
    described = _connectors(
        streams, lambda stream: _described(view, stream, detail, modes), statuses
    )
    return shapes.Schema(described, compact, shapes.Bearer("grant", "client", view.grant.grant_id))


def connectors(view: View) -> shapes.ConnectorList:
    """The granted connectors with the names of their streams."""
    return shapes.ConnectorList(
        _connectors(view.streams, lambda s: shapes.StreamSchema(s.name, shapes.NAMED))
    )


def list_streams(snapshot: Snapshot, view: View, connection_id: str | None) -> shapes.StreamList:
    """One row per granted (stream, connection), with the number of visible records."""
    rows = []
    streams = view.within(connection_id)
    spans = [snapshot.span(stream.selection()) for stream in streams]
    for stream, span in zip(streams, spans):
        count, _, last = span.get()
        shows_time = stream.manifest.time_field in stream.granted
        updated = moment(last) if shows_time and last is not None else None
        source = Source(stream.connection_id, None, stream.display_name or None)
        rows.append(shapes.StreamCount(stream.name, source, count, updated))
    rows.sort(key=lambda row: (row.name, row.source.connection_id))
    return shapes.StreamList(tuple(rows))


def stream_details(
    view: View, name: str, connection_id: str | None, modes: Mapping[int, str]
) -> shapes.StreamDetails:
    """One stream by name in full; 409 if connections share the name but not the description."""
    streams = view.stream(name, connection_id)
    row, *rest = [_row(stream, _described(view, stream, shapes.FULL, modes)) for stream in streams]
    if any(twin.stream != row.stream for twin in rest):
        raise ambiguous(view, streams)
    connections = tuple(source for stream_row in (row, *rest) for source in stream_row.connections)
    return shapes.StreamDetails(replace(row, connections=connections))


def _connectors(
    streams: Iterable[StreamView],
    describe: Callable[[StreamView], shapes.StreamSchema],
    statuses: Mapping[str, SyncStatus] = {},
) -> tuple[shapes.Connector, ...]:
    """Streams grouped by connector; connections that share a description share a row."""
    return shapes.merged(
        shapes.Connector(
            stream.connector_key,
            stream.connector_key,
            stream.connector_key,
            (_row(stream, describe(stream), statuses.get(stream.connection_id)),),
        )
        for stream in sorted(streams, key=lambda s: (s.connector_key, s.name, s.connection_id))
    )


def _row(
    stream: StreamView, described: shapes.StreamSchema, sync: SyncStatus | None = None
) -> shapes.StreamRow:
    source = stream.source._replace(sync=sync)
    return shapes.StreamRow(described, stream.connector_key, (source,))


def _described(
    view: View, stream: StreamView, detail: str, modes: Mapping[int, str]
) -> shapes.StreamSchema:
    """The description of one granted stream."""
    manifest, mode = stream.manifest, modes.get(stream.id)
    semantic = stream.semantic if (mode or WORDS) != WORDS else ()
    description = shapes.StreamSchema(
        stream.name,
        detail,
        manifest.label or None,
        tuple(key for key in manifest.primary_key if key in stream.granted),
        stream.sort_field,
        {
            name: _capability(manifest, path_of(name), detail, semantic)
            for name in manifest.fields
            if name in stream.granted
        }
        | {
            path: _capability(manifest, path, detail, semantic)
            for path in stream.ordinals
            if is_nested(path)
        },
        tuple(
            shapes.Relation(*astuple(expansion)) for expansion, _ in usable(view, stream).values()
        ),
        tuple(stream.views.values()),
        search=mode,
    )
    if detail == shapes.COMPACT:
        return description
    limit = stream.limit
    return replace(
        description,
        counts=manifest.counts,
        time_field=manifest.time_field if manifest.time_field in stream.granted else None,
        since=None if limit.since is None else moment(limit.since),
        until=None if limit.until is None else moment(limit.until),
    )


def _capability(
    manifest: StreamManifest, name: str, detail: str, semantic: Sequence[str]
) -> shapes.FieldCapability:
    kind, full = manifest.paths[name], detail == shapes.FULL
    return shapes.FieldCapability(
        type=kind.shown_as if full else kind.shown_as or kind.format or kind.type,
        role=kind.role,
        exact=name in manifest.exact_filters,
        operators=manifest.range_filters.get(name),
        lexical=name in manifest.lexical_fields,
        semantic=name in semantic,
        aggregations=tuple(kind for kind in shapes.METRICS if name in manifest.aggregations[kind]),
        schema=kind.schema if full else None,
    )
