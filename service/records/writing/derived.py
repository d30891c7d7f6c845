"""The data derived from a record: its sort keys, its indexed texts and its cells."""

from collections.abc import Iterator, Mapping
from typing import Any

from evidence.pointer import find, searched_text, top_level
from service.records.engine.large import Place
from evidence.manifest import StreamManifest
from service.records.engine.scopes import Scopes, StreamHandle
from evidence.manifest.values import Stored, sortable

#: The value of `record.cursor` for a record without one. It sorts before all others, so that one
#: row-value comparison pages through everything, and such records come last, newest first.
NO_CURSOR = -(1 << 63)


def order_of(
    manifest: StreamManifest, data: dict[str, Any]
) -> tuple[int | None, Stored, Stored | None, Stored | None]:
    """(`record.at`, `record.cursor`, `record.thread`, `record.place`) of a record."""
    at = _stored(manifest, manifest.time_field, data)
    same = manifest.cursor_field == manifest.time_field
    cursor = at if same else _stored(manifest, manifest.cursor_field, data)
    return (
        at if isinstance(at, int) else None,
        NO_CURSOR if cursor is None else cursor,
        _stored(manifest, manifest.roles.get("thread"), data),
        _stored(manifest, manifest.roles.get("position"), data),
    )


def texts_of(
    scopes: Scopes, data: dict[str, Any], places: Mapping[str, Place]
) -> Iterator[tuple[int, str, Place | None]]:
    """(ordinal, text, place if large) of the indexed fields in `data`, which has whole values.

    Nothing inside a large value is indexed.
    """
    for name, ordinal in scopes.searchable.items():
        location = places.get(top_level(name)) if places else None
        if location is None or location[4] == "string":
            if text := searched_text(find(data, name)):
                yield ordinal, text, location


def cells_of(
    stream: StreamHandle, data: dict[str, Any], places: Mapping[str, Place]
) -> Iterator[tuple[int, Stored]]:
    """(ordinal, value) of the compared fields in `data`."""
    for name, ordinal in stream.scopes.cells.items():
        location = places.get(top_level(name)) if places else None
        if location is None or location[4] == "string":
            stored = sortable(find(data, name), stream.manifest.paths[name])
            if stored is not None:
                yield ordinal, stored


def derives(manifest: StreamManifest) -> tuple[Any, ...]:
    """The parts of a manifest that affect derived data, for comparison with another manifest."""
    kinds = {name: manifest.paths[name] for name in manifest.cell_fields}
    order = (
        manifest.time_field,
        manifest.cursor_field,
        manifest.roles.get("thread"),
        manifest.roles.get("position"),
    )
    types = [manifest.fields[name] for name in order if name]
    return set(manifest.lexical_fields), kinds, order, types


def _stored(manifest: StreamManifest, name: str | None, data: dict[str, Any]) -> Stored | None:
    if name is None or name not in data:
        return None
    return sortable(data[name], manifest.fields[name])
