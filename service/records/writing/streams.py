"""Connections and their streams, as the importer creates and changes them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from evidence.errors import InvalidRequest, NotFound, Unavailable
from evidence.limits import BUDGETS
from service.records.writing.derived import derives
from evidence.names import check_connection_id
from evidence.manifest import StreamManifest, link, parse_stored
from service.records.engine.scopes import StreamHandle
from service.records.writing import Writing


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
        Streams(writer, connection_id).declare(manifests)


class Streams:
    """The streams of a connection. What refers to them is read once, and kept up to date."""

    def __init__(self, writer: Writing, connection_id: str) -> None:
        self._writer, self._connection_id = writer, connection_id
        #: {stream: {stream that refers to it: with which fields}}.
        self._referring: dict[str, dict[str, set[str]]] = {}
        for manifest in writer.manifests(connection_id):
            self._refer(manifest)

    def declare(self, manifests: Iterable[StreamManifest]) -> list[str]:
        """Creates or changes streams; existing records are reindexed. Returns their names."""
        with self._writer.transaction():
            connection = connect(self._writer, self._connection_id)
            declared = {manifest.name: manifest for manifest in manifests}
            before = {name: row for name in declared if (row := self._stored(name)) is not None}
            related = _targets([*before.values(), *declared.values()]) - declared.keys()
            before |= {name: stored for name in sorted(related) if (stored := self._stored(name))}
            for name, manifest in declared.items():
                self._refer(manifest, before.get(name))
            changed = [self._linked(manifest) for manifest in (before | declared).values()]
            return [
                manifest.name
                for manifest in changed
                if self._save(connection, manifest, before.get(manifest.name), declared)
            ]

    def _save(
        self,
        connection: int,
        manifest: StreamManifest,
        before: StreamManifest | None,
        declared: Collection[str],
    ) -> bool:
        """Stores a manifest, and reindexes its records; returns False if nothing changes."""
        writer, id, name = self._writer, self._connection_id, manifest.name
        exists = _find(writer, id, name) is not None
        if manifest == before and (exists or name not in declared):
            return False
        _check_size(manifest, before)
        _require_staged(writer, id, name, "rows" if name in declared else "relations")
        old = self.open(name, before) if exists else None
        writer.save_stream(connection, _row_name(writer, id, name), manifest)
        new = self.open(name)
        if old is not None and derives(old.manifest) != derives(new.manifest):
            writer.reindex(new, old.scopes)
        return True

    def open(self, name: str, manifest: StreamManifest | None = None) -> StreamHandle:
        """The stream to write to; raises NotFound if it is not declared."""
        _require_staged(self._writer, self._connection_id, name, "rows")
        row = _find(self._writer, self._connection_id, name)
        if row is None:
            missing = f"The connection {self._connection_id!r} has no stream {name!r}"
            raise NotFound(f"{missing}. Declare the stream with a manifest first.")
        stream, connection, text = row
        manifest = manifest or self._linked(parse_stored(text))
        with self._writer.transaction():
            return StreamHandle(stream, connection, manifest, self._writer.allot(stream, manifest))

    def _stored(self, name: str) -> StreamManifest | None:
        """The manifest of a stream; of a staged one without rows, that of the old one."""
        row = _find(self._writer, self._connection_id, name)
        row = row or self._writer.find_stream(self._connection_id, name)
        return None if row is None else self._linked(parse_stored(row[2]))

    def _linked(self, manifest: StreamManifest) -> StreamManifest:
        fields = set[str]().union(*self._referring.get(manifest.name, {}).values())
        return replace(manifest, foreign_keys=tuple(sorted(fields)))

    def _refer(self, manifest: StreamManifest, before: StreamManifest | None = None) -> None:
        """Notes to which streams this one refers."""
        for name in _targets([before] if before else []):
            self._referring[name].pop(manifest.name, None)
        for relation in manifest.relations.values():
            by = self._referring.setdefault(relation.stream, {})
            by.setdefault(manifest.name, set()).add(relation.foreign_key)


def _targets(manifests: Iterable[StreamManifest]) -> set[str]:
    """The streams to which others refer."""
    relations = (relation for manifest in manifests for relation in manifest.relations.values())
    return {relation.stream for relation in relations}


def _check_size(manifest: StreamManifest, before: StreamManifest | None) -> None:
    """Refuses more fields than a store has numbers for, unless the stream has them already."""
    most = max(BUDGETS.stream_fields, len(before.paths) if before else 0)
    if len(manifest.paths) > most:
        count = f"{len(manifest.paths)} fields"
        raise InvalidRequest(
            f"The stream {manifest.name!r} declares {count}; the limit is {most}. Remove some "
            "fields."
        )


def reindexes(writer: Writing, connection_id: str, manifests: Iterable[StreamManifest]) -> bool:
    """Whether `declare` would reindex a stream, which takes long if it has many records."""
    before = {manifest.name: manifest for manifest in writer.manifests(connection_id)}
    after = link((before | {manifest.name: manifest for manifest in manifests}).values())
    return any(new.name in before and derives(new) != derives(before[new.name]) for new in after)


def open_stream(writer: Writing, connection_id: str, name: str) -> StreamHandle:
    """The stream to write to; raises NotFound if it is not declared."""
    return Streams(writer, connection_id).open(name)


def all_streams(writer: Writing) -> Iterator[StreamHandle]:
    """Every stream of the store, to write to."""
    for connection_id in writer.connection_ids():
        streams = Streams(writer, connection_id)
        for manifest in writer.manifests(connection_id):
            yield streams.open(manifest.name)


def require_current(writer: Writing, streams: Mapping[int, StreamHandle]) -> None:
    """Raises `Unavailable` if a stream was replaced or removed since it was opened."""
    for id, stream in streams.items():
        if writer.stream_name(id) not in (stream.manifest.name, *writer.staged.values()):
            raise Unavailable(
                f"The stream {stream.manifest.name!r} was replaced or removed while rows were "
                "being written to it. Run the command again."
            )


def _row_name(writer: Writing, connection_id: str, name: str) -> str:
    """The name in the row of the stream that receives rows with this name."""
    return writer.staged.get((connection_id, name), name)


def _require_staged(writer: Writing, connection_id: str, name: str, what: str) -> None:
    """Refuses changes to streams other than the staged ones."""
    if writer.staged and (connection_id, name) not in writer.staged:
        streams = ", ".join(stream for _, stream in writer.staged)
        raise InvalidRequest(
            f"This would change {what} of {name!r}, but this command replaces only {streams}. "
            f"Use `rung import` to change {name!r}."
        )


def _find(writer: Writing, connection_id: str, name: str) -> tuple[int, int, str] | None:
    """(stream, connection, manifest) of rows for a stream; None if it is not declared."""
    return writer.find_stream(connection_id, _row_name(writer, connection_id, name))
