"""What can be asked: the schema document of a grant, compact or full, and stream metadata.

Only granted fields, relations and views appear; what is not granted is not mentioned at all.
"""

from collections.abc import Sequence
from typing import Any

from evidence.errors import Ambiguous, InvalidRequest
from evidence.limits import CONTRACT
from service.records.engine import Snapshot
from service.ports import SchemaQuery
from service.records import lists
from service.records.expand import usable
from service.records.manifest import Expansion
from service.records.values import moment
from service.records.view import StreamView, View

METRICS = ("count_distinct", "group_by", "group_by_time", "max", "min", "sum")
SIDES = ("exact_filter", "range_filter", "lexical_search", "semantic_search")


def schema(view: View, query: SchemaQuery) -> dict[str, Any]:
    """The schema document, `compact`, `full` or as a `document`; full needs one stream."""
    if query.detail == "full" and query.stream is None:
        raise InvalidRequest(
            'detail="full" needs a stream. Retry with stream, and connection_id where the name '
            "is shared.",
            param="detail",
            retry_with="stream",
        )
    streams: Sequence[StreamView] = view.within(query.connection_id)
    if query.stream is not None:
        streams = view.stream(query.stream, query.connection_id)
    if query.detail == "full" and len(streams) > 1:
        raise _ambiguous(view, streams)
    describe = _compact if query.detail == "compact" else metadata
    connectors = _connectors(view, streams, describe, compact=query.detail == "compact")
    return {
        "object": "schema",
        **({"detail": "compact"} if query.detail == "compact" else {}),
        "bearer": {"scope": "grant", "token_kind": "client", "grant_id": view.grant.grant_id},
        "connectors": connectors,
        "connector_count": len(connectors),
        "stream_count": sum(connector["stream_count"] for connector in connectors),
        "meta": {"count": {"kind": "none"}, "warnings": []},
    }


def connectors(view: View) -> dict[str, Any]:
    """The granted connectors with the names of their streams."""
    found = _connectors(view, view.streams, _named, compact=True)
    return {"object": "list", "data": found}


def list_streams(snapshot: Snapshot, view: View, connection_id: str | None) -> dict[str, Any]:
    """One row per granted (stream, connection), with the number of records the grant shows."""
    rows = []
    for stream in view.within(connection_id):
        count, _, last = snapshot.span(stream.selection())
        row: dict[str, Any] = {"object": "stream", "name": stream.name, "record_count": count}
        row |= stream.source
        row["freshness"] = {"status": "unknown"}
        if last is not None and stream.manifest.time_field in stream.granted:
            row["last_updated"] = row["freshness"]["captured_at"] = moment(last)
        rows.append(row)
    rows.sort(key=lambda row: (row["name"], row["connection_id"]))
    return {
        "object": "list",
        "has_more": False,
        "data": rows,
        "meta": {"count": {"kind": "none"}, "warnings": []},
    }


def metadata(view: View, stream: StreamView) -> dict[str, Any]:
    """The full metadata of one granted stream."""
    manifest = stream.manifest
    fields = _fields(stream)
    expansions = _expansions(view, stream)
    body: dict[str, Any] = {
        "object": "stream_metadata",
        "name": stream.name,
        "primary_key": [key for key in manifest.primary_key if key in stream.granted],
        "cursor_field": stream.sort_field,
        "schema": {
            "type": "object",
            "properties": {name: manifest.fields[name].schema for name in fields},
        },
        "selection": {"fields": True, "resources": True},
        "query": {
            "range_filters": {n: list(o) for n, o in manifest.range_filters.items() if n in fields},
            "aggregations": {
                "count": manifest.counts,
                **{m: [n for n in manifest.aggregations[m] if n in fields] for m in METRICS},
            },
            "search": {"lexical_fields": [n for n in manifest.lexical_fields if n in fields]},
            "expand": [
                {"name": e.name, "default_limit": e.default_limit, "max_limit": e.max_limit}
                for e in expansions
            ],
        },
        "views": _views(stream),
        "relationships": [
            {
                "name": e.name,
                "stream": e.stream,
                "foreign_key": e.foreign_key,
                "cardinality": e.cardinality,
            }
            for e in expansions
        ],
        "field_capabilities": {name: _capabilities(stream, name) for name in fields},
        "expand_capabilities": [_expand_capability(e) for e in expansions],
    }
    if manifest.time_field in stream.granted:
        body["consent_time_field"] = manifest.time_field
    if stream.limit.since is not None or stream.limit.until is not None:
        bounds = {"since": stream.limit.since, "until": stream.limit.until}
        body["time_constraint"] = {n: moment(at) for n, at in bounds.items() if at is not None}
    if manifest.label:
        body["label"] = manifest.label
    return body


def stream_document(view: View, name: str, connection_id: str | None) -> dict[str, Any]:
    """`metadata` of a stream by name; 409 where several connections share it unlike."""
    streams = view.stream(name, connection_id)
    bodies = [metadata(view, stream) for stream in streams]
    if any(body != bodies[0] for body in bodies[1:]):
        raise lists.ambiguous(view, streams)
    body = bodies[0]
    body["granted_connections"] = [_connection(stream) for stream in streams]
    body["meta"] = {"count": {"kind": "none"}, "warnings": []}
    return body


def _connectors(
    view: View, streams: Sequence[StreamView], describe: Any, *, compact: bool
) -> list[dict[str, Any]]:
    """Streams grouped by connector; connections that share a description share a row."""
    grouped: dict[str, list[StreamView]] = {}
    for stream in sorted(streams, key=lambda s: (s.connector_key, s.name, s.connection_id)):
        grouped.setdefault(stream.connector_key, []).append(stream)
    found = []
    for key, members in grouped.items():
        rows: list[tuple[dict[str, Any], list[StreamView]]] = []
        for stream in members:
            row = describe(view, stream)
            same = next((shared for known, shared in rows if known == row), None)
            if same is None:
                rows.append((row, [stream]))
            else:
                same.append(stream)
        connector = {
            "object": "connector",
            "source": {"id": key, "kind": "connector"},
            "connector_key": key,
            "connector_id": key,
            "stream_count": len(rows),
        }
        lists = [[_connection(stream) for stream in shared] for _, shared in rows]
        if compact:
            connector["granted_connections"] = max(lists, key=len)
        connector["streams"] = [
            (
                row
                if compact and listed == connector["granted_connections"]
                else {**row, "granted_connections": listed}
            )
            for (row, _), listed in zip(rows, lists)
        ]
        found.append(connector)
    return found


def _named(view: View, stream: StreamView) -> dict[str, Any]:
    return {"object": "stream", "name": stream.name}


def _compact(view: View, stream: StreamView) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": stream.name,
        "primary_key": [key for key in stream.manifest.primary_key if key in stream.granted],
        "cursor_field": stream.sort_field,
        "field_capabilities": {name: _flags(stream, name) for name in _fields(stream)},
        "expand_capabilities": [_expand_capability(e) for e in _expansions(view, stream)],
    }
    if views := _views(stream):
        row["views"] = views
    if stream.manifest.label:
        row["label"] = stream.manifest.label
    return row


def _fields(stream: StreamView) -> list[str]:
    return [name for name in stream.manifest.fields if name in stream.granted]


def _flags(stream: StreamView, name: str) -> str:
    """The capabilities of a field in PDPP's compact words."""
    manifest = stream.manifest
    kind = manifest.fields[name]
    flags = [f"t={_word(kind.shown_as or kind.format or kind.type)}"]
    if kind.role:
        flags.append(f"role={_word(kind.role)}")
    if name in manifest.exact_filters:
        flags.append("eq")
    if name in manifest.range_filters:
        flags.append("r=" + "|".join(manifest.range_filters[name]))
    if name in manifest.lexical_fields:
        flags.append("lex")
    kinds = [metric for metric in METRICS if name in manifest.aggregations[metric]]
    if kinds:
        flags.append("a=" + "|".join(kinds))
    return ",".join(flags)


def _word(text: str) -> str:
    """A value inside the flag grammar: its separators become underscores."""
    return "".join("_" if char in ";,[]{}|" or char.isspace() else char for char in text)


def _capabilities(stream: StreamView, name: str) -> dict[str, Any]:
    manifest = stream.manifest
    kind = manifest.fields[name]
    operators = manifest.range_filters.get(name)
    declared = {
        "exact_filter": name in manifest.exact_filters,
        "range_filter": operators is not None,
        "lexical_search": name in manifest.lexical_fields,
        "semantic_search": False,
    }
    found: dict[str, Any] = {"granted": True, "schema": kind.schema}
    found |= {side: {"declared": declared[side], "usable": declared[side]} for side in SIDES}
    if operators:
        found["range_filter"]["operators"] = list(operators)
    offered = {metric: name in manifest.aggregations[metric] for metric in METRICS}
    found["aggregation"] = {m: {"declared": on, "usable": on} for m, on in offered.items()}
    if kind.shown_as:
        found["type"] = kind.shown_as
    if kind.role:
        found["role"] = kind.role
    return found


def _expansions(view: View, stream: StreamView) -> list[Expansion]:
    return [relation for relation, _ in usable(view, stream).values()]


def _expand_capability(expansion: Expansion) -> dict[str, Any]:
    return {
        "name": expansion.name,
        "stream": expansion.stream,
        "target_stream": expansion.stream,
        "cardinality": expansion.cardinality,
        "foreign_key": expansion.foreign_key,
        "granted": True,
        "usable": True,
        "default_limit": expansion.default_limit,
        "max_limit": expansion.max_limit,
    }


def _views(stream: StreamView) -> list[dict[str, Any]]:
    found = []
    for view in stream.manifest.views.values():
        fields = [name for name in view.fields if name in stream.granted]
        if fields:
            found.append({"id": view.id, "label": view.label, "fields": fields})
    return found


def _connection(stream: StreamView) -> dict[str, Any]:
    named = {"connection_id": stream.connection_id}
    return {**named, "display_name": stream.display_name} if stream.display_name else named


def _ambiguous(view: View, streams: Sequence[StreamView]) -> Ambiguous:
    listed = lists.ambiguous(view, streams)
    for entry in listed.details["available_connections"]:
        entry["stream"] = streams[0].name
    return Ambiguous(
        f"The stream {streams[0].name!r} comes from {len(streams)} connections. Retry with one "
        f"connection_id (at most {CONTRACT.candidates} are listed).",
        code="ambiguous_schema_detail",
        retry_with="connection_id",
        calls=listed.calls,
        **listed.details,
    )
