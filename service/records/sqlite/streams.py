"""Connections and their streams, as the importer makes and changes them."""

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from evidence.errors import NotFound
from service.records.sqlite.indexing import reindex
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
        after = before | {manifest.name: manifest for manifest in manifests}
        for manifest in link(after.values()):
            if manifest == before.get(manifest.name):
                continue
            old = (
                open_stream(writer, connection_id, manifest.name)
                if manifest.name in before
                else None
            )
            _save(writer, connection, manifest)
            new = _handle(writer, connection_id, manifest)
            if old is not None:
                reindex(writer, old.id, (old.manifest, old.scopes), (new.manifest, new.scopes))


def manifests_of(writer: Writer, connection_id: str) -> list[StreamManifest]:
    """The manifests of a connection's streams, by name."""
    rows = writer.db.execute(
        "SELECT manifest FROM stream JOIN connection ON connection.id = stream.connection"
        " WHERE connection_id = ? ORDER BY name",
        (connection_id,),
    ).fetchall()
    return parse({"streams": [orjson.loads(row[0]) for row in rows]}) if rows else []


def open_stream(writer: Writer, connection_id: str, name: str) -> StreamHandle:
    """The stream to write to; raises NotFound if it is not declared."""
    for manifest in manifests_of(writer, connection_id):
        if manifest.name == name:
            return _handle(writer, connection_id, manifest)
    raise NotFound(f"{connection_id!r} has no stream {name!r}; declare it with a manifest first.")


def _handle(writer: Writer, connection_id: str, manifest: StreamManifest) -> StreamHandle:
    with writer.transaction():
        stream, connection = writer.db.execute(
            "SELECT stream.id, connection.id FROM stream"
            " JOIN connection ON connection.id = stream.connection"
            " WHERE connection_id = ? AND name = ?",
            (connection_id, manifest.name),
        ).fetchone()
        return StreamHandle(stream, connection, manifest, allot(writer.db, stream, manifest))


def _find_connection(writer: Writer, connection_id: str) -> int | None:
    row = writer.db.execute(
        "SELECT id FROM connection WHERE connection_id = ?", (connection_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def _save(writer: Writer, connection: int, manifest: StreamManifest) -> None:
    writer.db.execute(
        "INSERT INTO stream (connection, name, manifest) VALUES (?, ?, ?)"
        " ON CONFLICT (connection, name) DO UPDATE SET manifest = excluded.manifest",
        (connection, manifest.name, orjson.dumps(manifest.to_json()).decode()),
    )


def connections_of(writer: Writer) -> list[str]:
    """The ids of all connections that have a stream, sorted."""
    rows = writer.db.execute(
        "SELECT connection_id FROM connection c"
        " WHERE EXISTS (SELECT 1 FROM stream s WHERE s.connection = c.id) ORDER BY 1"
    )
    return [row[0] for row in rows]
