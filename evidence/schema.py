"""The schema as typed values: connectors, streams, fields, relations and views.

The compact flags of a field, such as `t=text,eq,r=gte|lt,a=group_by`, are spelled and parsed here.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evidence.manifest.parts import View
from evidence.model import Source

#: Detail of a stream's description: its name, also its capabilities, or also its JSON Schema.
NAMED, COMPACT, FULL = "named", "compact", "full"
#: The flags of a field without any.
NO_FLAGS = "declared"
#: The members of a capability that flags represent.
_FLAGS = {
    **dict(t="type", role="role", eq="exact", r="operators", lex="lexical", sem="semantic"),
    "a": "aggregations",
}
#: Type words of fields that hold times.
TIMES = ("timestamp", "date-time", "date")
#: The metrics of a field, in the order of the flags.
METRICS = ("count_distinct", "group_by", "group_by_time", "max", "min", "sum")

#: How a stream is searched, and the share of its records that have vectors.
SEARCH_MODE = re.compile(r"words(\+meaning( [0-9]{1,3}%)?)?")

Warnings = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class FieldCapability:
    """The capabilities of one field.

    `type` is the declared type word, `operators` are those of range filters (None: no range
    filter), `other` are flags of a source that have no meaning here. `schema` is the JSON Schema,
    only in full descriptions.
    """

    type: str | None = None
    role: str | None = None
    exact: bool = False
    operators: tuple[str, ...] | None = None
    lexical: bool = False
    semantic: bool = False
    aggregations: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    schema: Any = None

    @property
    def word(self) -> str | None:
        """The type word: the declared one, or else the format or the type of the JSON Schema."""
        schema = self.schema if isinstance(self.schema, dict) else {}
        words = (self.type, schema.get("format"), schema.get("type"))
        return next((word for word in words if word and isinstance(word, str)), None)

    @property
    def flags(self) -> str:
        """The capabilities as compact flags."""
        flags = [f"t={_word(self.word)}"] if self.word else []
        if self.role:
            flags.append(f"role={_word(self.role)}")
        if self.exact:
            flags.append("eq")
        if self.operators is not None:
            flags.append("r=" + "|".join(self.operators))
        if self.lexical:
            flags.append("lex")
        if self.semantic:
            flags.append("sem")
        if self.aggregations:
            flags.append("a=" + "|".join(self.aggregations))
        return ",".join([*flags, *self.other]) or NO_FLAGS


def parse_flags(flags: str) -> FieldCapability:
    """The capabilities of a field from its compact flags."""
    parsed: dict[str, Any] = {"other": ()}
    for flag in flags.split(","):
        name, _, value = flag.partition("=")
        words = tuple(word for word in value.split("|") if word)
        if name in ("t", "role") and value:
            parsed[_FLAGS[name]] = value
        elif name in ("r", "a"):
            parsed[_FLAGS[name]] = words
        elif flag in ("eq", "lex", "sem"):
            parsed[_FLAGS[flag]] = True
        elif flag and flag != NO_FLAGS:
            parsed["other"] += (flag,)
    return FieldCapability(**parsed)


def _word(text: str) -> str:
    """A value for the flag grammar: its separators become underscores."""
    return "".join("_" if char in ";,[]{}|" or char.isspace() else char for char in text)


@dataclass(frozen=True, slots=True)
class Relation:
    """Related records to expand: those of `stream` whose `foreign_key` is the id."""

    name: str
    stream: str | None
    foreign_key: str | None
    cardinality: str | None
    default_limit: int | None
    max_limit: int | None


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """The description of a stream; connections that share it are listed by its row.

    `search` is how it is searched, with the share of its records that have vectors if that is
    known: `words+meaning 83%`. It is None if the source has no vectors.

    `counts` to `until` exist only in full descriptions: whether records are counted, the field of
    the grant's time limit, and that limit as RFC 3339 times.
    """

    name: str
    detail: str = COMPACT
    label: str | None = None
    primary_key: tuple[str, ...] = ()
    cursor_field: str | None = None
    fields: Mapping[str, FieldCapability] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    views: tuple[View, ...] = ()
    counts: bool = True
    time_field: str | None = None
    since: str | None = None
    until: str | None = None
    search: str | None = field(default=None, compare=False)

    def narrowed(self, names: Iterable[str]) -> "StreamSchema":
        """The same description with only some of the fields."""
        fields = {name: self.fields[name] for name in names}
        hidden = self.fields.keys() - fields.keys()
        views = (replace(v, fields=_without(v.fields, hidden)) for v in self.views)
        keys = _without(self.primary_key, hidden)
        return replace(self, fields=fields, views=tuple(views), primary_key=keys)


def joint_search(streams: Iterable[StreamSchema]) -> str | None:
    """How some streams are searched, without the share if they differ."""
    modes = {stream.search or "" for stream in streams}
    return (modes.pop() if len(modes) == 1 else max(modes).partition(" ")[0]) or None


def _without(names: Iterable[str], hidden: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in hidden)


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One description and the connections that have such a stream."""

    stream: StreamSchema
    connector_key: str | None
    connections: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Connector:
    """One connector with all of its names and its streams."""

    key: str | None
    id: str | None
    source_id: str | None
    rows: tuple[StreamRow, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for name in (self.key, self.id, self.source_id) if name)

    @property
    def connection_ids(self) -> list[str]:
        ids = (source.connection_id for row in self.rows for source in row.connections)
        return list(dict.fromkeys(name for name in ids if name))


def merged(connectors: Iterable[Connector]) -> tuple[Connector, ...]:
    """One connector per key; streams of one description share a row that lists all connections."""
    grouped: dict[str, list[Connector]] = {}
    for connector in connectors:
        grouped.setdefault(connector.key or "", []).append(connector)
    return tuple(
        replace(same[0], rows=_shared(row for member in same for row in member.rows))
        for _, same in sorted(grouped.items())
    )


def _shared(rows: Iterable[StreamRow]) -> tuple[StreamRow, ...]:
    shared = list[StreamRow]()
    for row in rows:
        undescribed = row.stream.detail == NAMED  # its source did not describe it
        alike = (
            n
            for n, earlier in enumerate(shared)
            if earlier.stream == row.stream
            or undescribed
            and earlier.stream.name == row.stream.name
        )
        index = next(alike, None)
        if index is None:
            shared.append(row)
        else:
            both = dict.fromkeys((*shared[index].connections, *row.connections))
            search = joint_search((shared[index].stream, row.stream))
            stream = replace(shared[index].stream, search=search)
            shared[index] = replace(shared[index], stream=stream, connections=tuple(both))
    return tuple(sorted(shared, key=lambda row: row.stream.name))


@dataclass(frozen=True, slots=True)
class Bearer:
    """The grant, or the package of grants, of a token."""

    scope: str | None
    token_kind: str | None
    grant_id: str | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a grant, or of one stream. `compact` documents have no full descriptions."""

    connectors: tuple[Connector, ...]
    compact: bool
    bearer: Bearer | None = None
    warnings: Warnings = field(default_factory=list)
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> list[StreamRow]:
        return [row for connector in self.connectors for row in connector.rows]

    @property
    def detail(self) -> str:
        """The detail that the caller asked for."""
        return self.args.get("detail") or COMPACT


@dataclass(frozen=True, slots=True)
class ConnectorList:
    """The granted connectors with the names of their streams."""

    connectors: tuple[Connector, ...]
    warnings: Warnings = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StreamCount:
    """One stream of one connection, with its number of records and the time of the last one."""

    name: str
    source: Source
    record_count: int | None
    last_updated: str | None
    freshness: str | None = "unknown"


@dataclass(frozen=True, slots=True)
class StreamList:
    """All streams of all connections."""

    rows: tuple[StreamCount, ...]
    warnings: Warnings = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StreamDetails:
    """One stream in full."""

    row: StreamRow
    warnings: Warnings = field(default_factory=list)
