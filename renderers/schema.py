"""Renders the schema as text: an index of streams, or one stream's details with calls that work.

The details are its fields and a description of its capabilities.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from evidence import schema_wire
from evidence.limits import CONTRACT
from evidence.model import Continuation, Source, count_fitting, distinct, paged
from evidence.schema import NO_FLAGS, TIMES, Schema, StreamRow, StreamSchema
from renderers.rendering import Context, Rendering, header, quoted, value_of, warning
from renderers.schema_index import PAGE_BYTES, connection_line, fitting, head, render_index

LEGEND = {
    "t": "declared_type",
    "role": "declared_role",
    "eq": "exact_filter",
    "r": "range_filter_operators",
    "lex": "full_text_search",
    "sem": "search_by_meaning",
    "a": "aggregations",
}
# Fields that a projected record always keeps, because calls need them.
IDENTITY = "id, stream, connection_id, display_name and emitted_at"
# Bytes of names that a list shows before it gives the number of the others.
LIST_BYTES = 400
EXAMPLE_TIME = "2026-01-01T00:00:00Z"


def capabilities(stream: StreamSchema) -> list[str]:
    """Filters, sort, projection, count, expand, search, aggregation and changes of a stream."""
    fields = stream.fields.items()
    exact = [name for name, field in fields if field.exact]
    ranges = [
        f"{value_of(name)} ({'|'.join(field.operators)})"
        for name, field in fields
        if field.operators is not None
    ]
    cursor = stream.cursor_field
    lines = [
        f"filter exact: {_names(exact)}; range: {_list(ranges)}",
        f"sort: {f'-{cursor} (default) or {cursor}' if cursor else 'none'}",
        f"projection: fields=[names] returns only those fields and {IDENTITY}",
        'count: count="exact" counts all matches; changes: changes_since="beginning", '
        "then next_changes_since",
        f"expand: {_list(_relations(stream))}",
        _search(stream),
        f"aggregate: count{_aggregations(stream)}",
    ]
    if stream.views:
        views = [f"{value_of(view.id)} ({_names(view.fields)})" for view in stream.views]
        lines.append(f"views: {_list(views)}")
    if stream.primary_key:
        lines.append(f"primary_key: {_names(stream.primary_key)}")
    return lines


def examples(row: StreamRow, *, alone: bool) -> list[Continuation]:
    """One complete call for each capability of the stream; `alone` if no other row has its name."""
    stream = row.stream
    base: dict[str, Any] = {"stream": stream.name}
    if row.connections and not (alone and len(row.connections) > 1):
        base["connection_id"] = row.connections[0].connection_id
    calls = [{**base, "limit": 5}]
    timed = [
        name
        for name, field in stream.fields.items()
        if "gte" in (field.operators or ()) and field.word in TIMES
    ]
    if timed:
        calls[0]["filter"] = {timed[0]: {"gte": EXAMPLE_TIME}}
    if stream.cursor_field:
        calls[0]["sort"] = f"-{stream.cursor_field}"
    if stream.relations:
        calls.append({**base, "limit": 5, "expand": [stream.relations[0].name]})
    continuations = [Continuation("query_records", args, "example") for args in calls]
    if grouped := _first(stream, "group_by"):
        args = {**base, "metric": "count", "group_by": grouped}
        continuations.append(Continuation("aggregate", args, "example"))
    if by_time := _first(stream, "group_by_time"):
        args = {**base, "metric": "count", "group_by_time": by_time, "granularity": "month"}
        continuations.append(Continuation("aggregate", args, "example"))
    if any(field.lexical for field in stream.fields.values()):
        args = {"query": "your words", "streams": [stream.name]}
        continuations.append(Continuation("search", args, "example"))
    return continuations


def _search(stream: StreamSchema) -> str:
    """The searched fields, or a note that the source does not name them."""
    searched = [name for name, field in stream.fields.items() if field.lexical]
    by_meaning = [name for name, field in stream.fields.items() if field.semantic]
    described = any(field.flags != NO_FLAGS for field in stream.fields.values())
    where = _names(searched) if described else "fields that this source does not name"
    semantic = f"by meaning in {_names(by_meaning)}" if by_meaning else "no semantic search"
    return f"search: full text in {where}; {semantic}"


def _names(names: Iterable[str]) -> str:
    return _list([value_of(name) for name in names])


def _list(entries: Sequence[str]) -> str:
    """The first entries of a long list; the flags of each field list all."""
    count = count_fitting((len(entry.encode()) + 2 for entry in entries), LIST_BYTES)
    tail = f" and {len(entries) - count} more" if count < len(entries) else ""
    return f"{', '.join(entries[:count])}{tail}" or "none"


def _relations(stream: StreamSchema) -> list[str]:
    return [
        f"{value_of(relation.name)} -> {value_of(relation.stream)} "
        f"({relation.cardinality}, default {relation.default_limit}, at most {relation.max_limit})"
        for relation in stream.relations
    ]


def _aggregations(stream: StreamSchema) -> str:
    kinds: dict[str, list[str]] = {}
    for name, field in stream.fields.items():
        for kind in field.aggregations:
            kinds.setdefault(kind, []).append(name)
    return "".join(f"; {kind}: {_names(names)}" for kind, names in sorted(kinds.items()))


def _first(stream: StreamSchema, kind: str) -> str | None:
    return next((name for name, f in stream.fields.items() if kind in f.aggregations), None)


ROWS_MAX = 8
# Bytes reserved for the example calls of a row, and for the call that replaces a row.
EXAMPLES_BYTES = 1_300
ROW_CALL_BYTES = 90
#: Members that a page shows in its own form, after the others.
_LAST = ("field_capabilities", "schema")


def render(index: Schema, context: Context) -> Rendering:
    """Both channels of the index, or of one stream's details."""
    if index.args.get("stream") is None:
        return render_index(index, context)
    return _details(index, context)


def _details(index: Schema, context: Context) -> Rendering:
    """The rows of one stream, each with as many fields as fit."""
    full = index.detail == "full"
    rows = index.rows[:ROWS_MAX]
    remaining = min(len(index.rows) - len(rows), CONTRACT.page_items)
    room = context.budgets.text_bytes - PAGE_BYTES - ROW_CALL_BYTES * remaining
    share = room // max(1, len(rows)) - EXAMPLES_BYTES
    lines = [
        header("schema", stream=index.args["stream"], detail=index.detail, rows=len(index.rows)),
        "legend: " + " ".join(f"{flag}={text}" for flag, text in LEGEND.items()),
    ]
    streams = list[tuple[StreamRow, list[str], list[Source]]]()
    following = list[Continuation]()
    for row in rows:
        sources = fitting(row.connections, share // 4)
        capability_lines = ["  " + line for line in capabilities(row.stream)]
        room = share - share // 4 - sum(len(line.encode()) + 1 for line in capability_lines)
        fields, after = _page(row, index.args.get("fields_after"), room, full)
        lines += [*_row_lines(row, fields, sources, full), *capability_lines]
        if after:
            args = {**index.args, "fields_after": after}
            if row.connections and len(index.rows) > 1:
                args["connection_id"] = row.connections[0].connection_id
            following.append(Continuation("schema", args, "more_fields"))
        following += examples(row, alone=len(index.rows) == 1)
        streams.append((row, fields, sources))
    for row in index.rows[ROWS_MAX:]:
        args = {"stream": row.stream.name, "connection_id": row.connections[0].connection_id}
        following.append(Continuation("schema", args, "another_connection"))
    following = distinct(following)[: CONTRACT.page_items]
    lines += [warning(notice) for notice in index.warnings]
    lines += [context.step(call) for call in following]
    data = {
        **head(index, index.detail),
        "connectors": [_connector(*stream, full) for stream in streams],
        "field_capability_legend": LEGEND,
    }
    return context.rendering(lines, {"data": paged(data, following)})


def _page(row: StreamRow, after: str | None, room: int, full: bool) -> tuple[list[str], str | None]:
    """(names of the shown fields, the name after which the next page begins, if any)."""
    fields = row.stream.fields
    names = list(fields)
    if after in fields:
        names = names[names.index(str(after)) + 1 :]

    def size(name: str) -> int:
        flags = fields[name].flags
        schema = orjson.dumps([_json_schema(row, name), flags]) if full else b""
        return 2 * len(name.encode()) + len(flags) + 24 + len(schema)

    page = names[: count_fitting(map(size, names), room)]
    return page, page[-1] if len(page) < len(names) else None


def _row_lines(
    row: StreamRow, fields: Sequence[str], sources: Sequence[Source], full: bool
) -> list[str]:
    stream, connections = row.stream, ", ".join(map(connection_line, sources))
    if remaining := len(row.connections) - len(sources):
        connections += f" and {remaining} more"
    label = f" label={quoted(stream.label)}" if stream.label else ""
    mode = f" search={stream.search}" if stream.search else ""
    lines = [
        f"stream {value_of(stream.name)}{label} connector_key={value_of(row.connector_key)}{mode}",
        f"  connection_id: {connections}",
        f"  fields ({len(stream.fields)}):",
    ]
    for name in fields:
        flags = stream.fields[name].flags.replace(",", " ")
        schema = f" {orjson.dumps(_json_schema(row, name)).decode()}" if full else ""
        lines.append(f"    {value_of(name)} {flags}{schema}")
    return lines


def _connector(
    row: StreamRow, fields: Sequence[str], sources: Sequence[Source], full: bool
) -> dict[str, Any]:
    stream = row.stream.narrowed(fields)
    described = schema_wire.stream(stream)
    members = {key: part for key, part in described.items() if key not in _LAST}
    body: dict[str, Any] = _capped(members)
    if full:
        properties = {name: _json_schema(row, name) for name in fields}
        body["schema"] = {"type": "object", "properties": properties}
    body["field_capabilities"] = {name: stream.fields[name].flags for name in fields}
    body["field_count"] = len(row.stream.fields)
    return {
        "connector_key": row.connector_key,
        "granted_connections": [schema_wire.connection(source) for source in sources],
        "connection_count": len(row.connections),
        "streams": [body],
    }


def _capped(value: Any) -> Any:
    """A description with lists no longer than a page."""
    if isinstance(value, dict):
        return {key: _capped(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_capped(part) for part in value[: CONTRACT.page_items]]
    return value


def _json_schema(row: StreamRow, name: str) -> Any:
    schema = row.stream.fields[name].schema
    return {} if schema is None else schema
