"""Connections and their streams, as the importer makes and changes them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from evidence.errors import InvalidRequest, NotFound, Unavailable
from service.records.sqlite.indexing import derived, reindex
from service.records.intake import check_connection_id
from service.records.manifest import StreamManifest, link, parse
from service.records.sqlite.scopes import Scopes, allot, first_ordinal
from service.records.sqlite.transactions import Writer


@dataclass(frozen=True, slots=True)
class StreamHandle:
    """A stream of the store, ready to be written to."""

    id: int
    connection: int
    manifest: StreamManifest
    scopes: Scopes


def connect(
    writer: Writer,
    connection_id: str,
    *,
    connector_key: str | None = None,
    label: str | None = None,
) -> int:
    """The row of a connection, made if new; a key or label given again replaces the old one."""
    check_connection_id(connection_id)
    with writer.transaction():
        found = _find_connection(writer, connection_id)
        if found is None:
            writer.db.execute(
                "INSERT INTO connection (connection_id, connector_key, first_ordinal)"
                " VALUES (?, ?, ?)",
                (connection_id, connector_key or connection_id, first_ordinal(writer.db)),
            )
        writer.db.execute(
            "UPDATE connection SET connector_key = coalesce(?, connector_key),"
            " display_name = coalesce(?, display_name) WHERE connection_id = ?",
            (connector_key, label, connection_id),
        )
        return _find_connection(writer, connection_id) or 0


def declare(writer: Writer, connection_id: str, manifests: Iterable[StreamManifest]) -> None:
    """Makes or changes streams of a connection; records already there are indexed anew."""
    with writer.transaction():
        connection = connect(writer, connection_id)
        before = {manifest.name: manifest for manifest in manifests_of(writer, connection_id)}
        given = {manifest.name: manifest for manifest in manifests}
        for manifest in link((before | given).values()):
            known = _find_stream(writer, connection_id, manifest.name) is not None
            if manifest == before.get(manifest.name) and (known or manifest.name not in given):
                continue
            _require_staged(
                writer,
                connection_id,
                manifest.name,
                "rows" if manifest.name in given else "relations",
            )
            old = open_stream(writer, connection_id, manifest.name) if known else None
            _save(writer, connection, manifest, _row_name(writer, connection_id, manifest.name))
            new = _handle(writer, connection_id, manifest)
            if old is not None:
                reindex(writer, old.id, (old.manifest, old.scopes), (new.manifest, new.scopes))


def reindexes(writer: Writer, connection_id: str, manifests: Iterable[StreamManifest]) -> bool:
    """Whether `declare` would index a stream anew, which takes long if it has many records."""
    before = {manifest.name: manifest for manifest in manifests_of(writer, connection_id)}
    after = link((before | {manifest.name: manifest for manifest in manifests}).values())
    return any(one.name in before and derived(one) != derived(before[one.name]) for one in after)


def manifests_of(writer: Writer, connection_id: str) -> list[StreamManifest]:
    """The manifests of a connection's streams, by name; of staged ones as they will be."""
    rows = writer.db.execute(
        "SELECT name, manifest FROM stream JOIN connection ON connection.id = stream.connection"
        " WHERE connection_id = ? ORDER BY name >= char(1) DESC, name",
        (connection_id,),
    )
    found: dict[str, Any] = {}
    for row_name, text in rows:
        manifest = orjson.loads(text)
        name = manifest["name"]
        if row_name in (name, _row_name(writer, connection_id, name)):
            found[name] = manifest
    return parse({"streams": list(found.values())}) if found else []


def open_stream(writer: Writer, connection_id: str, name: str) -> StreamHandle:
    """The stream to write to; raises NotFound if it is not declared."""
    _require_staged(writer, connection_id, name, "rows")
    for manifest in manifests_of(writer, connection_id):
        if manifest.name == name and _find_stream(writer, connection_id, name) is not None:
            return _handle(writer, connection_id, manifest)
    raise NotFound(f"{connection_id!r} has no stream {name!r}; declare it with a manifest first.")


def require_current(writer: Writer, streams: Mapping[int, StreamHandle]) -> None:
    """Raises `Unavailable` if a stream was replaced or removed since it was opened."""
    for id, stream in streams.items():
        row = writer.db.execute("SELECT name FROM stream WHERE id = ?", (id,)).fetchone()
        if row is None or row[0] not in (stream.manifest.name, *writer.staged.values()):
            raise Unavailable(
                f"The stream {stream.manifest.name!r} was replaced or removed while rows were "
                "written to it. Run the command again."
            )


def _row_name(writer: Writer, connection_id: str, name: str) -> str:
    """The name in its row of the stream that rows of this name go into."""
    return writer.staged.get((connection_id, name), name)


def _require_staged(writer: Writer, connection_id: str, name: str, what: str) -> None:
    """Refuses to change another stream than those that are staged."""
    if writer.staged and (connection_id, name) not in writer.staged:
        streams = ", ".join(stream for _, stream in writer.staged)
        raise InvalidRequest(
            f"This would change {what} of {name!r}, but only {streams} is being replaced. "
            "Change the other with: rung import."
        )


def _handle(writer: Writer, connection_id: str, manifest: StreamManifest) -> StreamHandle:
    with writer.transaction():
        found = _find_stream(writer, connection_id, manifest.name)
        assert found is not None
        stream, connection = found
        return StreamHandle(stream, connection, manifest, allot(writer.db, stream, manifest))


def _find_stream(writer: Writer, connection_id: str, name: str) -> tuple[int, int] | None:
    """(stream, connection) that rows for a stream go into; None if it is not declared."""
    found: tuple[int, int] | None = writer.db.execute(
        "SELECT stream.id, connection.id FROM stream"
        " JOIN connection ON connection.id = stream.connection"
        " WHERE connection_id = ? AND name = ?",
        (connection_id, _row_name(writer, connection_id, name)),
    ).fetchone()
    return found


def _find_connection(writer: Writer, connection_id: str) -> int | None:
    row = writer.db.execute(
        "SELECT id FROM connection WHERE connection_id = ?", (connection_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def _save(writer: Writer, connection: int, manifest: StreamManifest, name: str) -> None:
    writer.db.execute(
        "INSERT INTO stream (connection, name, manifest) VALUES (?, ?, ?)"
        " ON CONFLICT (connection, name) DO UPDATE SET manifest = excluded.manifest",
        (connection, name, orjson.dumps(manifest.to_json()).decode()),
    )


def connections_of(writer: Writer) -> list[str]:
    """The ids of all connections that have a stream, sorted."""
    rows = writer.db.execute(
        "SELECT connection_id FROM connection c WHERE EXISTS"
        " (SELECT 1 FROM stream s WHERE s.connection = c.id AND s.name >= char(1)) ORDER BY 1"
    )
    return [row[0] for row in rows]
