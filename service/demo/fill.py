"""Fills a store with the demo, and creates the token that reads it."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from evidence.errors import EvidenceError
from service.demo import debian, owner
from service.demo.owner import Connection
from service.access.grants import create, find
from service.access.registry import Registry
from service.records.ingest import Batch
from service.records.manifest import parse
from service.records.scopes import StreamHandle
from service.records.streams import connect, declare, manifests_of, open_stream
from service.records.writing import Writing

LABEL = "demo"
VERSION = "1"


def fill(writer: Writing, *, with_debian: bool) -> list[str]:
    """Imports the demo unless the store has it; returns its connection ids."""
    ids = _put_once(writer, "demo", owner.build)
    if with_debian or writer.meta("demo_debian"):
        salt = str(writer.meta("secret"))
        ids += _put_once(writer, "demo_debian", lambda: [debian.build(salt=salt)])
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


def _put_once(writer: Writing, mark: str, build: Callable[[], Iterable[Connection]]) -> list[str]:
    """Imports connections unless the store has their mark: version and ids."""
    version, *ids = str(writer.meta(mark) or "").split("\n")
    if version == VERSION:
        return ids
    ids = []
    for connection in build():
        _put(writer, connection)
        ids.append(connection.connection_id)
    with writer.transaction():
        writer.set_meta(mark, "\n".join((VERSION, *ids)))
    return ids


def _put(writer: Writing, connection: Connection) -> None:
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


def _keep(path: Path, token: str) -> None:
    """Writes the token so that only its owner can read it."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token + "\n")
