"""Builds the index of a schema: every granted stream name, in both channels of the first answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

import orjson

from evidence import schema_wire
from evidence.errors import InvalidRequest
from evidence.model import SYNC_MEMBERS, Continuation, Source, count_fitting, distinct, known
from evidence.model import members, next_page, paged
from evidence.schema import Schema, StreamSchema, joint_search
from renderers.rendering import Context, Rendering, fits, header, most, quoted, value_of, warning

#: Bytes of an answer that its entries leave to its head, warnings and calls.
PAGE_BYTES = 3_000


@dataclass(frozen=True, slots=True)
class _Entries:
    """The streams of an index that an answer shows, as (connector, name), from `start` to `end`."""

    index: Schema
    names: Sequence[tuple[str, str]]
    start: int
    end: int

    @property
    def connectors(self) -> dict[str, list[str]]:
        """The shown names of streams by connector."""
        grouped: dict[str, list[str]] = {}
        for key, name in self.names[self.start : self.end]:
            grouped.setdefault(key, []).append(name)
        return grouped

    @property
    def following(self) -> list[Continuation]:
        """The call for details of the first stream, and for further streams."""
        if self.start == self.end:
            return []
        calls = [Continuation("schema", {"stream": self.names[self.start][1]}, "details")]
        if self.end < len(self.names):
            cursor = "/".join(quote(part, safe="") for part in self.names[self.end - 1])
            calls += next_page("schema", self.index.args, cursor)
        return calls


def render_index(index: Schema, context: Context) -> Rendering:
    """Every granted stream name, grouped by connector; connections as far as they fit.

    Labels are left out first, then all connections but one of a connector, then all but the names.
    Only if the names alone do not fit, the answer has fewer of them, and the call for the others.
    """
    names = list(dict.fromkeys((row.connector_key or "", row.stream.name) for row in index.rows))
    bound = context.budgets.schema_bytes
    budgets = replace(context.budgets, structured_bytes=bound)
    whole = _Entries(index, names, _begin(index.args.get("cursor"), names), len(names))

    def cut(count: int, context: Context) -> Rendering:
        entries = replace(whole, end=whole.start + count)
        return _indexed(entries, context, labels=False, room=0, dense=True)

    forms = ((True, bound, False), (False, bound, False), (False, 0, False), (False, bound, True))
    for labels, room, dense in forms:
        room = min(room, bound - PAGE_BYTES - sum(_name_cost(*entry, dense) for entry in names))
        rendering = _indexed(whole, context, labels=labels, room=room, dense=dense)
        if fits(rendering, budgets, bound) and not (labels and _hides_connections(rendering)):
            return rendering
    count = most(whole.end - whole.start, cut, budgets, text_bytes=bound)
    return cut(count, context)


def _begin(cursor: str | None, names: Sequence[tuple[str, str]]) -> int:
    """The number of the first stream after a cursor, which names the last one before it."""
    if cursor is None:
        return 0
    last = tuple(unquote(part) for part in cursor.split("/"))
    if last in names:
        return names.index(last) + 1
    raise InvalidRequest(
        "This cursor is not valid for this call. Send it exactly as it was returned, or leave it "
        "out to start over.",
        code="invalid_cursor",
        param="cursor",
    )


def _indexed(
    entries: _Entries, context: Context, *, labels: bool, room: int, dense: bool
) -> Rendering:
    """The index with as many connections as fit into `room`, at least one of each connector."""
    index, names_by_key, following = entries.index, entries.connectors, entries.following
    sources: dict[str, dict[Source, None]] = {key: {} for key in names_by_key}
    for row in index.rows:
        if (key := row.connector_key or "") in names_by_key:
            connections = (
                row.connections
                if labels
                else [s._replace(display_name=None, sync=None) for s in row.connections]
            )
            sources[key] |= dict.fromkeys(connections)
    share = room // max(1, len(sources))
    fitted = {key: fitting(list(connections), share) for key, connections in sources.items()}
    modes = _modes(index) if labels else {}
    count, total = entries.end - entries.start, len(index.rows)
    is_part = count < len(entries.names)
    lines = [
        header(
            "schema",
            connectors=len(index.connectors) if is_part else len(names_by_key),
            streams=len(entries.names) if is_part else total,
            shown=count if is_part else None,
        )
    ]
    for key, names in names_by_key.items():
        lines.append(f"connector {value_of(key)}")
        lines.append("  connections: " + ", ".join(map(connection_line, fitted[key])))
        if remaining := len(sources[key]) - len(fitted[key]):
            lines[-1] += f" and {remaining} more; search hits and ambiguity errors show their ids"
        lines.append("  streams: " + " ".join(map(value_of, names)))
        for mode in distinct(modes[key, name] for name in names if (key, name) in modes):
            searched = [value_of(name) for name in names if modes.get((key, name)) == mode]
            lines.append(f"  search={mode}: {' '.join(searched)}")
    lines += [warning(notice) for notice in index.warnings]
    if following:
        lines.append(
            "To see a stream's fields, filters and example calls (shown for the first stream):"
        )
    lines += [context.step(call) for call in following]
    if not index.rows:
        lines.append("This grant has no streams. Ask the owner for a grant that includes some.")
    connectors = [
        {
            "connector_key": key,
            "granted_connections": [schema_wire.connection(source) for source in fitted[key]],
            "connection_count": len(sources[key]),
            "streams": (
                [*names]
                if dense
                else [known({"name": name, "search": modes.get((key, name))}) for name in names]
            ),
        }
        for key, names in names_by_key.items()
    ]
    data = {**head(index, "compact"), "connectors": connectors}
    return context.rendering(lines, {"data": paged(data, following)})


def _modes(index: Schema) -> dict[tuple[str, str], str]:
    """How the streams are searched, by (connector, name), as far as their sources describe it."""
    streams: dict[tuple[str, str], list[StreamSchema]] = {}
    for row in index.rows:
        streams.setdefault((row.connector_key or "", row.stream.name), []).append(row.stream)
    return known({entry: joint_search(same) for entry, same in streams.items()})


def _hides_connections(rendering: Rendering) -> bool:
    """Whether an index leaves connections out."""
    connectors = rendering.structured["data"]["connectors"]
    return any(len(row["granted_connections"]) < row["connection_count"] for row in connectors)


def head(index: Schema, detail: str) -> dict[str, Any]:
    """The members of an answer before its connectors."""
    return {"object": "schema", "detail": detail, **schema_wire.head(index)}


def connection_line(source: Source) -> str:
    """The id of a connection, with its label and how up to date it is, if it has them."""
    label = f"={quoted(source.display_name, 60)}" if source.display_name else ""
    facts = known(members(source.sync, *SYNC_MEMBERS)) if source.sync else {}
    status = "".join(f" {name}={value_of(fact)}" for name, fact in facts.items())
    return f"{value_of(source.connection_id)}{label}{status}"


def _name_cost(key: str, name: str, dense: bool) -> int:
    """The bytes of a stream's name in the channel in which it is longer."""
    structured = orjson.dumps(name if dense else {"name": name})
    return max(len(value_of(name).encode()), len(structured)) + 1


def fitting(sources: Sequence[Source], room: int) -> list[Source]:
    """As many connections as fit in both channels, at least one."""
    lines = (connection_line(source).encode() for source in sources)
    entries = (orjson.dumps(schema_wire.connection(source)) for source in sources)
    sizes = (max(len(line), len(entry)) + 2 for line, entry in zip(lines, entries))
    return list(sources[: count_fitting(sizes, room)])
