"""The stream manifest: the fields of a stream, and the queries they support.

It uses the vocabulary of PDPP's stream metadata; `docs/manifest.md` describes it. `parse` reads a
document once, into typed `StreamManifest`s:

    (messages,) = parse({"streams": [{"name": "messages", "schema": {...}, ...}]})
    messages.time_field        # 'received_at'
"""

from collections.abc import Iterable, Mapping
import dataclasses
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import orjson

from evidence.limits import CONTRACT
from evidence.operators import OPERATORS
from evidence.pointer import escaped, is_nested, path_of
from evidence.manifest.parts import Part, View, as_path, fields_of, nested_of, read_name
from evidence.manifest.values import FieldType

METRICS = ("sum", "min", "max", "group_by", "group_by_time", "count_distinct")
CARDINALITIES = ("has_many", "has_one")
#: Roles that position a record in time and in its conversation.
PLACING_ROLES = ("event-time", "thread", "position")
#: The manifests of stored streams that are not parsed again.
STORED_CACHED: Final = 1_024
_QUERY_WORDS = ("exact_filters", "range_filters", "aggregations", "search", "expand")


@dataclass(frozen=True, slots=True)
class Expansion:
    """Related records: those of `stream` whose `foreign_key` is this record's id."""

    name: str
    stream: str
    foreign_key: str
    cardinality: str
    default_limit: int = CONTRACT.expand_items
    max_limit: int = CONTRACT.expand_items_max


@dataclass(frozen=True, slots=True)
class StreamManifest:
    """One stream, compiled from its `document`.

    `relations` are all declared ones, `expansions` those that may be requested.

    `roles` maps roles to fields: the first field that declares a role has it. `paths` has the
    fields by path, and those declared inside them by JSON Pointer: these are the names for filters,
    aggregates and search. `foreign_keys` are fields with which other streams of the connection
    refer to this one's records; `link` fills them in.
    """

    name: str
    label: str | None
    primary_key: tuple[str, ...]
    fields: dict[str, FieldType]
    cursor_field: str | None
    time_field: str | None
    exact_filters: tuple[str, ...]
    range_filters: dict[str, tuple[str, ...]]
    aggregations: dict[str, tuple[str, ...]]
    counts: bool
    lexical_fields: tuple[str, ...]
    relations: dict[str, Expansion]
    expansions: dict[str, Expansion]
    views: dict[str, View]
    roles: dict[str, str]
    document: dict[str, Any] = dataclasses.field(repr=False)
    paths: dict[str, FieldType] = dataclasses.field(default_factory=dict)
    foreign_keys: tuple[str, ...] = ()

    @property
    def cell_fields(self) -> tuple[str, ...]:
        """Scalar fields whose values are stored as cells, in declared order."""
        names = {*self.exact_filters, *self.range_filters, *map(path_of, self.foreign_keys)}
        names.update(*self.aggregations.values())
        names.update(path_of(name) for role, name in self.roles.items() if role in PLACING_ROLES)
        return tuple(name for name, kind in self.paths.items() if name in names and kind.is_scalar)

    @property
    def semantic_fields(self) -> tuple[str, ...]:
        """Searchable fields that are also searched by meaning, by default title and text."""
        search = (self.document.get("query") or {}).get("search") or {}
        fields = search.get("semantic_fields")
        if not isinstance(fields, list):
            fields = [self.roles.get(role) for role in ("primary-title", "primary-text")]
        texts = [name for name in fields if isinstance(name, str)]
        paths = {*texts, *map(path_of, texts)}
        return tuple(path for path in self.lexical_fields if path in paths)


def parse(document: Any) -> list[StreamManifest]:
    """The streams of a manifest document; raises InvalidRequest with the invalid path."""
    root = Part("manifest", document)
    streams = [_read_stream(part) for part in root.parts("streams")]
    if not streams:
        raise root.fault('declares no streams; use {"streams": [{"name": …, "schema": …}]}')
    for number, stream in enumerate(streams):
        if stream.name in {earlier.name for earlier in streams[:number]}:
            raise root.fault(f"declares the stream {stream.name!r} twice; merge the two")
    return link(streams)


@lru_cache(maxsize=STORED_CACHED)
def parse_stored(text: str) -> StreamManifest:
    """The manifest of one stream, from the JSON text that a store has of it."""
    (manifest,) = parse({"streams": [orjson.loads(text)]})
    return manifest


def link(streams: Iterable[StreamManifest]) -> list[StreamManifest]:
    """The same streams of one connection, with the foreign keys of their relations."""
    declared = list(streams)
    keys: dict[str, set[str]] = {}
    for stream in declared:
        for relation in stream.relations.values():
            keys.setdefault(relation.stream, set()).add(relation.foreign_key)
    linked = ((stream, tuple(sorted(keys.get(stream.name, ())))) for stream in declared)
    return [
        stream if stream.foreign_keys == fields else replace(stream, foreign_keys=fields)
        for stream, fields in linked
    ]


def _read_stream(part: Part) -> StreamManifest:
    name = read_name(part, "name")
    fields = fields_of(part)
    paths = {path_of(field): kind for field, kind in fields.items()}
    for field, kind in fields.items():
        paths |= nested_of(escaped(field), kind.schema)
    query = part.part("query")
    query.refuse_unknown(_QUERY_WORDS)
    cursor = part.field("cursor_field", fields)
    time = part.field("consent_time_field", fields)
    if time and not fields[time].is_time:
        raise part.at("consent_time_field").fault(f"{time!r} must be a date-time or date field")
    if time is None and cursor and fields[cursor].is_time:
        time = cursor
    if cursor and not fields[cursor].is_scalar:
        raise part.at("cursor_field").fault(f"{cursor!r} must be a scalar field")
    relations = _read_relations(part)
    return StreamManifest(
        name=name,
        label=part.text("label"),
        primary_key=part.fields("primary_key", fields),
        fields=fields,
        cursor_field=cursor,
        time_field=time,
        exact_filters=_read_exact(query, paths),
        range_filters=_read_ranges(query.part("range_filters"), paths),
        aggregations=_read_aggregations(query.part("aggregations"), paths),
        counts=query.part("aggregations").value.get("count", True) is not False,
        lexical_fields=query.part("search").fields("lexical_fields", paths, _is_text),
        relations=relations,
        expansions=_read_expansions(query, relations),
        views=_read_views(part, fields),
        roles=_roles(fields),
        document=part.value,
        paths=paths,
    )


def _roles(fields: Mapping[str, FieldType]) -> dict[str, str]:
    roles: dict[str, str] = {}
    for name, kind in fields.items():
        if kind.role:
            roles.setdefault(kind.role, name)
    return roles


def _read_exact(query: Part, paths: Mapping[str, FieldType]) -> tuple[str, ...]:
    if "exact_filters" in query.value:
        return query.fields("exact_filters", paths, _is_scalar)
    return tuple(name for name, kind in paths.items() if kind.is_scalar and not is_nested(name))


def _read_ranges(part: Part, fields: Mapping[str, FieldType]) -> dict[str, tuple[str, ...]]:
    ranges = {}
    for name in part.value:
        path = as_path(name, fields)
        part.require(path, fields, _is_measured)
        ranges[path] = part.choices(name, tuple(OPERATORS))
    return ranges


def _read_aggregations(part: Part, fields: Mapping[str, FieldType]) -> dict[str, tuple[str, ...]]:
    part.refuse_unknown(("count", *METRICS))
    rules = {
        "sum": _is_number,
        "min": _is_measured,
        "max": _is_measured,
        "group_by": _is_scalar,
        "group_by_time": _is_time,
        "count_distinct": _is_scalar,
    }
    return {metric: part.fields(metric, fields, rules[metric]) for metric in METRICS}


def _read_relations(part: Part) -> dict[str, Expansion]:
    relations = {}
    for item in part.parts("relationships"):
        name = read_name(item, "name")
        cardinality = item.text("cardinality") or "has_many"
        if cardinality not in CARDINALITIES:
            raise item.at("cardinality").fault("must be has_many or has_one")
        stream, key = read_name(item, "stream"), read_name(item, "foreign_key")
        relations[name] = Expansion(name, stream, key, cardinality)
    return relations


def _read_expansions(query: Part, relations: Mapping[str, Expansion]) -> dict[str, Expansion]:
    expansions = {}
    for item in query.parts("expand"):
        name = read_name(item, "name")
        if name not in relations:
            raise item.at("name").fault(f"{name!r} is not a declared relationship; declare it")
        most = item.count("max_limit", CONTRACT.expand_items_max, CONTRACT.expand_items_max)
        default = item.count("default_limit", min(CONTRACT.expand_items, most), most)
        expansions[name] = replace(relations[name], default_limit=default, max_limit=most)
    return expansions


def _read_views(part: Part, fields: Mapping[str, FieldType]) -> dict[str, View]:
    views = {}
    for item in part.parts("views"):
        name = read_name(item, "id")
        views[name] = View(name, item.text("label") or name, item.fields("fields", fields))
    return views


def _is_scalar(kind: FieldType) -> str | None:
    return None if kind.is_scalar else "must be a string, a number or a boolean"


def _is_number(kind: FieldType) -> str | None:
    return None if kind.is_number else "must be a number or an integer, or have the format decimal"


def _is_measured(kind: FieldType) -> str | None:
    return None if kind.is_number or kind.is_time else "must be a number, a date-time or a date"


def _is_time(kind: FieldType) -> str | None:
    return None if kind.is_time else "must be a date-time or date field"


def _is_text(kind: FieldType) -> str | None:
    return None if kind.type in ("string", "array") else "must be a string field or an array"
