"""A stream that is written to, and the numbers of its fields."""

from dataclasses import dataclass

from service.records.manifest import StreamManifest


@dataclass(frozen=True, slots=True)
class Scopes:
    """The ordinals of one stream's fields: the searchable ones, and those with cells."""

    searchable: dict[str, int]
    cells: dict[str, int]


@dataclass(frozen=True, slots=True)
class StreamHandle:
    """A stream of the store, ready to be written to."""

    id: int
    connection: int
    manifest: StreamManifest
    scopes: Scopes
