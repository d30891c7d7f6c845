"""A stream that is open for writing, and the ordinals of its fields."""

from collections.abc import Mapping
from dataclasses import dataclass

from evidence.manifest import StreamManifest


@dataclass(frozen=True, slots=True)
class Scopes:
    """The ordinals of one stream's fields: the searchable ones, and those with cells."""

    searchable: dict[str, int]
    cells: dict[str, int]

    @classmethod
    def of(cls, manifest: StreamManifest, ordinals: Mapping[str, int]) -> "Scopes":
        """Those of the fields of a stream; `ordinals` has those of all."""
        return cls(
            {name: ordinals[name] for name in manifest.lexical_fields},
            {name: ordinals[name] for name in manifest.cell_fields},
        )


@dataclass(frozen=True, slots=True)
class StreamHandle:
    """A stream of the store, ready to be written to."""

    id: int
    connection: int
    manifest: StreamManifest
    scopes: Scopes
