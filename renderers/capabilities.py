"""What one stream can be asked, in words, and calls that ask it."""

from collections.abc import Sequence
from typing import Any

from evidence.continuation import Continuation
from evidence.model import StreamRow
from renderers.lines import value_of

LEGEND = {
    "t": "declared_type",
    "role": "declared_role",
    "eq": "exact_filter",
    "r": "range_filter_operators",
    "lex": "full_text_search",
    "a": "aggregations",
}
# What stays beside the requested fields of a projected record, because calls need it.
IDENTITY = "id, stream, connection_id, display_name and emitted_at"
# The names one list may show before it says how many more there are.
LIST_BYTES = 400
EXAMPLE_TIME = "2026-01-01T00:00:00Z"


def flags_of(row: StreamRow, name: str) -> dict[str, str]:
    """The flags of a field: name to value, empty for flags that stand alone."""
    found = {}
    for flag in row.fields.get(name, "").split(","):
        key, _, value = flag.partition("=")
        found[key] = value
    return found


def _search(flags: dict[str, dict[str, str]]) -> str:
    """Which fields are searched, where a source tells; it searches all the same if not."""
    searched = [name for name in flags if "lex" in flags[name]]
    told = any(set(known) - {"", "declared"} for known in flags.values())
    where = _names(searched) if told else "fields this source does not name"
    return f"search: full text in {where}; no semantic search"


def lines(row: StreamRow) -> list[str]:
    """Filter, sort, projection, count, expand, search, aggregation and changes of a stream."""
    flags = {name: flags_of(row, name) for name in row.fields}
    exact = [name for name in flags if "eq" in flags[name]]
    ranges = [f"{value_of(n)} ({flags[n]['r']})" for n in flags if "r" in flags[n]]
    sort = f"-{row.cursor_field} (default) or {row.cursor_field}" if row.cursor_field else "none"
    found = [
        f"filter exact: {_names(exact)}; range: {_listed(ranges)}",
        f"sort: {sort}",
        f"projection: fields=[names] keeps those fields; {IDENTITY} always stay",
        'count: count="exact" counts all matches; changes: changes_since="beginning", '
        "then the bookmark",
        f"expand: {_listed(_relations(row))}",
        _search(flags),
        f"aggregate: count{_aggregations(flags)}",
    ]
    if row.views:
        shown = [f"{value_of(v.get('id'))} ({_names(v.get('fields'))})" for v in row.views]
        found.append(f"views: {_listed(shown)}")
    if row.primary_key:
        found.append(f"primary_key: {_names(row.primary_key)}")
    return found


def examples(row: StreamRow, *, alone: bool) -> list[Continuation]:
    """One ready call for each thing the stream offers; `alone` when no other row has its name."""
    base: dict[str, Any] = {"stream": row.name}
    if row.connections and not (alone and len(row.connections) > 1):
        base["connection_id"] = row.connections[0].connection_id
    flags = {name: flags_of(row, name) for name in row.fields}
    calls = [{**base, "limit": 5}]
    timed = [name for name in flags if "gte" in flags[name].get("r", "") and _is_time(flags[name])]
    if timed:
        calls[0]["filter"] = {timed[0]: {"gte": EXAMPLE_TIME}}
    if row.cursor_field:
        calls[0]["sort"] = f"-{row.cursor_field}"
    if row.relations:
        calls.append({**base, "limit": 5, "expand": [row.relations[0]["name"]]})
    found = [Continuation("query_records", args, "example") for args in calls]
    grouped = _first(flags, "group_by")
    if grouped:
        args = {**base, "metric": "count", "group_by": grouped}
        found.append(Continuation("aggregate", args, "example"))
    if by_time := _first(flags, "group_by_time"):
        args = {**base, "metric": "count", "group_by_time": by_time, "granularity": "month"}
        found.append(Continuation("aggregate", args, "example"))
    if any("lex" in found_flags for found_flags in flags.values()):
        args = {"query": "your words", "streams": [row.name]}
        found.append(Continuation("search", args, "example"))
    return found


def _names(names: Any) -> str:
    return _listed([value_of(name) for name in names or ()])


def _listed(shown: Sequence[str]) -> str:
    """Some of a list where it is long; the flags of each field say the same."""
    kept, room = 0, LIST_BYTES
    for one in shown:
        room -= len(one.encode()) + 2
        if room < 0 and kept:
            return f"{', '.join(shown[:kept])} and {len(shown) - kept} more"
        kept += 1
    return ", ".join(shown) or "none"


def _relations(row: StreamRow) -> list[str]:
    return [
        f"{value_of(r.get('name'))} -> {value_of(r.get('target_stream') or r.get('stream'))} "
        f"({r.get('cardinality')}, default {r.get('default_limit')}, at most {r.get('max_limit')})"
        for r in row.relations
    ]


def _aggregations(flags: dict[str, dict[str, str]]) -> str:
    kinds: dict[str, list[str]] = {}
    for name, found in flags.items():
        for kind in filter(None, found.get("a", "").split("|")):
            kinds.setdefault(kind, []).append(name)
    return "".join(f"; {kind}: {_names(names)}" for kind, names in sorted(kinds.items()))


def _is_time(flags: dict[str, str]) -> bool:
    return flags.get("t") in ("timestamp", "date-time", "date")


def _first(flags: dict[str, dict[str, str]], kind: str) -> str | None:
    return next((n for n, f in flags.items() if kind in f.get("a", "").split("|")), None)
