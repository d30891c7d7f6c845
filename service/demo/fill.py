"""Fills a store with the demo, and creates the token that reads it."""

import os
from collections.abc import Iterable
from pathlib import Path

from evidence.errors import EvidenceError
from service.demo.year import Connection, build
from service.access.grants import create, find
from service.access.registry import Registry
from service.records.ingest import Batch
from service.records.manifest import parse
from service.records.opening import staging
from service.records.scopes import StreamHandle
from service.records.streams import connect, declare, manifests_of, open_stream
from service.records.writing import Writing

LABEL = "demo"
VERSION = "3"


def fill(writer: Writing) -> list[str]:
    """Imports the demo unless the store has it; returns its connection ids.

    The records of an older version are replaced.
    """
    version, *ids = str(writer.meta("demo") or "").split("\n")
    if version != VERSION:
        _empty(writer, ids)
        ids = [_put(writer, connection) for connection in build()]
        with writer.transaction():
            writer.set_meta("demo", "\n".join((VERSION, *ids)))
    writer.finish()
    return ids


def token_for(writer: Writing, connections: Iterable[str], kept: Path) -> str:
    """A token for the whole demo: the stored one while it is valid, else a new one."""
    entries = [
        {"connection_id": connection_id, "stream": manifest.name, "fields": list(manifest.fields)}
        for connection_id in connections
        for manifest in manifests_of(writer, connection_id)
    ]
    registry = Registry(writer)
    wanted = {(entry["connection_id"], entry["stream"], *entry["fields"]) for entry in entries}
    try:
        token = kept.read_text(encoding="utf-8").strip()
        granted = find(registry, token).streams
        if wanted == {(item.connection_id, item.stream, *item.fields) for item in granted}:
            return token
    except (OSError, EvidenceError):
        pass  # no stored token, or an expired one
    _, token = create(registry, {"streams": entries}, label=LABEL)
    _keep(kept, token)
    return token


def _empty(writer: Writing, connections: Iterable[str]) -> None:
    """Removes the records of connections; their streams stay, for the grants that cover them."""
    streams = [(name, each.name) for name in connections for each in manifests_of(writer, name)]
    if streams:
        with staging(writer, streams) as stage:
            stage.keep_manifests(streams)
            stage.publish()


def _put(writer: Writing, connection: Connection) -> str:
    name = connection.connection_id
    connect(writer, name, connector_key=connection.connector_key, label=connection.label)
    declare(writer, name, parse(connection.manifest))
    streams: dict[str, StreamHandle] = {}
    batch = Batch(writer)
    for rows in (connection.rows, connection.later):
        for row in rows:
            stream = row.stream or ""
            if stream not in streams:
                streams[stream] = open_stream(writer, name, stream)
            batch.add(streams[stream], row)
        batch.flush()
    if batch.counts.refused:
        raise AssertionError(f"the demo is refused by the store: {batch.counts.refusals}")
    return name


def _keep(path: Path, token: str) -> None:
    """Writes the token so that only its owner can read it."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token + "\n")
