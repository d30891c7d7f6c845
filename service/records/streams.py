"""Connections and their streams, as the importer creates and changes them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import orjson

from evidence.errors import InvalidRequest, NotFound, Unavailable
from evidence.limits import BUDGETS
from service.records.derived import derives
from service.records.intake import check_connection_id
from service.records.manifest import StreamManifest, link, parse
from service.records.scopes import StreamHandle
from service.records.writing import Writing

#: An import opens every stream of its connection for each new one.
MANIFESTS_CACHED: Final = 1_024


def connect(
    writer: Writing,
    connection_id: str,
    *,
    connector_key: str | None = None,
    label: str | None = None,
) -> int:
    """The row of a connection, created if new; a key or label given again replaces the old one."""
    check_connection_id(connection_id)
    with writer.transaction():
        return writer.save_connection(connection_id, connector_key, label)


def declare(writer: Writing, connection_id: str, manifests: Iterable[StreamManifest]) -> None:
    """Creates or changes streams of a connection; existing records are reindexed."""
    with writer.transaction():
        connection = connect(writer, connection_id)
        before = {manifest.name: manifest for manifest in manifests_of(writer, connection_id)}
        given = {manifest.name: manifest for manifest in manifests}
        for manifest in link((before | given).values()):
            same = manifest == before.get(manifest.name)
            if same and manifest.name not in given:
                continue
            known = _find(writer, connection_id, manifest.name) is not None
            if same and known:
                continue
            _check_size(manifest, before.get(manifest.name))
            what = "rows" if manifest.name in given else "relations"
            _require_staged(writer, connection_id, manifest.name, what)
            old = open_stream(writer, connection_id, manifest.name) if known else None
            row_name = _row_name(writer, connection_id, manifest.name)
            writer.save_stream(connection, row_name, manifest)
            new = _handle(writer, connection_id, manifest)
            if old is not None and derives(old.manifest) != derives(new.manifest):
                writer.reindex(new, old.scopes)


def _check_size(manifest: StreamManifest, before: StreamManifest | None) -> None:
    """Refuses more fields than a store has numbers for, unless the stream has them already."""
    most = max(BUDGETS.stream_fields, len(before.paths) if before else 0)
    if len(manifest.paths) > most:
        count = f"{len(manifest.paths)} fields"
        raise InvalidRequest(f"{manifest.name!r} declares {count}, at most {most}. Remove some.")


def reindexes(writer: Writing, connection_id: str, manifests: Iterable[StreamManifest]) -> bool:
    """Whether `declare` would reindex a stream, which takes long if it has many records."""
    before = {manifest.name: manifest for manifest in manifests_of(writer, connection_id)}
    after = link((before | {manifest.name: manifest for manifest in manifests}).values())
    return any(one.name in before and derives(one) != derives(before[one.name]) for one in after)


def manifests_of(writer: Writing, connection_id: str) -> list[StreamManifest]:
    """The manifests of a connection's streams, by name; for staged ones, the future manifests."""
    manifests: dict[str, StreamManifest] = {}
    for row_name, text in writer.manifest_rows(connection_id):
        manifest = _stored(text)
        if row_name in (manifest.name, _row_name(writer, connection_id, manifest.name)):
            manifests[manifest.name] = manifest
    return link(manifests.values())


@lru_cache(maxsize=MANIFESTS_CACHED)
def _stored(text: str) -> StreamManifest:
    """A manifest as a store has it."""
    (manifest,) = parse({"streams": [orjson.loads(text)]})
    return manifest


def open_stream(writer: Writing, connection_id: str, name: str) -> StreamHandle:
    """The stream to write to; raises NotFound if it is not declared."""
    _require_staged(writer, connection_id, name, "rows")
    for manifest in manifests_of(writer, connection_id):
        if manifest.name == name and _find(writer, connection_id, name) is not None:
            return _handle(writer, connection_id, manifest)
    raise NotFound(f"{connection_id!r} has no stream {name!r}; declare it with a manifest first.")


def all_streams(writer: Writing) -> Iterator[StreamHandle]:
    """Every stream of the store, to write to."""
    for connection_id in writer.connection_ids():
        for manifest in manifests_of(writer, connection_id):
            yield open_stream(writer, connection_id, manifest.name)


def require_current(writer: Writing, streams: Mapping[int, StreamHandle]) -> None:
    """Raises `Unavailable` if a stream was replaced or removed since it was opened."""
    for id, stream in streams.items():
        if writer.stream_name(id) not in (stream.manifest.name, *writer.staged.values()):
            raise Unavailable(
                f"The stream {stream.manifest.name!r} was replaced or removed while rows were "
                "written to it. Run the command again."
            )


def _row_name(writer: Writing, connection_id: str, name: str) -> str:
    """The name in the row of the stream that receives rows with this name."""
    return writer.staged.get((connection_id, name), name)


def _require_staged(writer: Writing, connection_id: str, name: str, what: str) -> None:
    """Refuses changes to streams other than the staged ones."""
    if writer.staged and (connection_id, name) not in writer.staged:
        streams = ", ".join(stream for _, stream in writer.staged)
        raise InvalidRequest(
            f"This would change {what} of {name!r}, but only {streams} is being replaced. "
            "Change the other with: rung import."
        )


def _handle(writer: Writing, connection_id: str, manifest: StreamManifest) -> StreamHandle:
    with writer.transaction():
        found = _find(writer, connection_id, manifest.name)
        assert found is not None
        stream, connection = found
        return StreamHandle(stream, connection, manifest, writer.allot(stream, manifest))


def _find(writer: Writing, connection_id: str, name: str) -> tuple[int, int] | None:
    """(stream, connection) that rows for a stream go into; None if it is not declared."""
    return writer.find_stream(connection_id, _row_name(writer, connection_id, name))
