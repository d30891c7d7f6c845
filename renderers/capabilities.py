"""The capabilities of one stream in words, with example calls."""

from collections.abc import Iterable, Sequence
from typing import Any

from evidence.model import Continuation
from evidence.schema import NO_FLAGS, StreamRow, StreamSchema
from renderers.rendering import value_of

LEGEND = {
    "t": "declared_type",
    "role": "declared_role",
    "eq": "exact_filter",
    "r": "range_filter_operators",
    "lex": "full_text_search",
    "a": "aggregations",
}
# Fields a projected record keeps beside the requested ones, because calls need them.
IDENTITY = "id, stream, connection_id, display_name and emitted_at"
# The names one list may show before it says how many more there are.
LIST_BYTES = 400
EXAMPLE_TIME = "2026-01-01T00:00:00Z"
#: Type words of fields that hold times.
TIMES = ("timestamp", "date-time", "date")


def lines(stream: StreamSchema) -> list[str]:
    """Filter, sort, projection, count, expand, search, aggregation and changes of a stream."""
    fields = stream.fields.items()
    exact = [name for name, field in fields if field.exact]
    ranges = [
        f"{value_of(name)} ({'|'.join(field.operators)})"
        for name, field in fields
        if field.operators is not None
    ]
    cursor = stream.cursor_field
    found = [
        f"filter exact: {_names(exact)}; range: {_listed(ranges)}",
        f"sort: {f'-{cursor} (default) or {cursor}' if cursor else 'none'}",
        f"projection: fields=[names] keeps those fields; {IDENTITY} always stay",
        'count: count="exact" counts all matches; changes: changes_since="beginning", '
        "then the bookmark",
        f"expand: {_listed(_relations(stream))}",
        _search(stream),
        f"aggregate: count{_aggregations(stream)}",
    ]
    if stream.views:
        shown = [f"{value_of(view.id)} ({_names(view.fields)})" for view in stream.views]
        found.append(f"views: {_listed(shown)}")
    if stream.primary_key:
        found.append(f"primary_key: {_names(stream.primary_key)}")
    return found


def examples(row: StreamRow, *, alone: bool) -> list[Continuation]:
    """One ready call for each thing the stream offers; `alone` when no other row has its name."""
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
    found = [Continuation("query_records", args, "example") for args in calls]
    if grouped := _first(stream, "group_by"):
        args = {**base, "metric": "count", "group_by": grouped}
        found.append(Continuation("aggregate", args, "example"))
    if by_time := _first(stream, "group_by_time"):
        args = {**base, "metric": "count", "group_by_time": by_time, "granularity": "month"}
        found.append(Continuation("aggregate", args, "example"))
    if any(field.lexical for field in stream.fields.values()):
        args = {"query": "your words", "streams": [stream.name]}
        found.append(Continuation("search", args, "example"))
    return found


def _search(stream: StreamSchema) -> str:
    """The searched fields if the source names them; it searches all the same if not."""
    searched = [name for name, field in stream.fields.items() if field.lexical]
    described = any(field.flags != NO_FLAGS for field in stream.fields.values())
    where = _names(searched) if described else "fields this source does not name"
    return f"search: full text in {where}; no semantic search"


def _names(names: Iterable[str]) -> str:
    return _listed([value_of(name) for name in names])


def _listed(shown: Sequence[str]) -> str:
    """The first entries of a long list; the flags of each field list all."""
    kept, room = 0, LIST_BYTES
    for one in shown:
        room -= len(one.encode()) + 2
        if room < 0 and kept:
            return f"{', '.join(shown[:kept])} and {len(shown) - kept} more"
        kept += 1
    return ", ".join(shown) or "none"


def _relations(stream: StreamSchema) -> list[str]:
    return [
        f"{value_of(one.name)} -> {value_of(one.stream)} "
        f"({one.cardinality}, default {one.default_limit}, at most {one.max_limit})"
        for one in stream.relations
    ]


def _aggregations(stream: StreamSchema) -> str:
    kinds: dict[str, list[str]] = {}
    for name, field in stream.fields.items():
        for kind in field.aggregations:
            kinds.setdefault(kind, []).append(name)
    return "".join(f"; {kind}: {_names(names)}" for kind, names in sorted(kinds.items()))


def _first(stream: StreamSchema, kind: str) -> str | None:
    return next((name for name, f in stream.fields.items() if kind in f.aggregations), None)
